package check

import "testing"

func TestNeverPublished(t *testing.T) {
	rejected(t, []forgery{
		{"a request", "= retry/nobody\nsend 40 c 1 40 40.1 400", "", "", []Rule{NeverPublished}},
		{"a letter", "= retry/nobody\nletter rejected 1", "", "", []Rule{NeverPublished}},
		{"a letter for a conflict", "= retry/nobody\nletter conflict 0 conflict", "", "", []Rule{NeverPublished}},
	})
}

func TestLost(t *testing.T) {
	rejected(t, []forgery{
		{"never worked on", "= retry/x\npub 40", "", "", []Rule{Lost}},
		{"tried only", "= retry/x\npub 40\nsend 40.1 c 1 40.1 40.2 500", "", "", []Rule{Lost}},
		{"rejected, no letter", "= retry/x reject\npub 40\nsend 40.1 c 1 40.1 40.2 400", "", "", []Rule{Lost}},
		{"conflict, no letter", "", "letter conflict 0 conflict", "", []Rule{LostConflict}},
		{"the letter of the conflict only", "= retry/x\npub 40\npub 41 conflict\nletter conflict 0 conflict", "", "", []Rule{Lost}},
		{"a letter of the original only", "= retry/x reject\npub 40\npub 41 conflict\nletter rejected 1", "", "", []Rule{LostConflict}},
	})
	accepted(t, []excuse{
		{"never confirmed", "= retry/x\npub 40 unconfirmed", nil, nil},
		{"conflict never confirmed", "= retry/x reject\npub 40\npub 41 unconfirmed conflict\nletter rejected 1", nil, nil},
	})
}

func TestLeft(t *testing.T) {
	rejected(t, []forgery{
		{"the original", "= retry/x\npub 40\nleft retry", "", "", []Rule{LeftBehind}},
		{"the conflict", "= retry/x reject\npub 40\npub 41 conflict\nletter rejected 1\nleft retry.wait.5s", "", "", []Rule{LeftBehind}},
		{"what was worked on and not recorded", "= retry/x\npub 40\nsend 40.1 c 1 40.1 40.2 0 worked\nleft retry", "", "", []Rule{LeftBehind}},
	})
}
