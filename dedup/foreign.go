package dedup

import (
	"errors"
	"strings"
)

// ErrForeignRecord is in the error of an operation whose key holds something that is no record: another program's, or
// garbage. The store is well, and every other key with it; this one stays as it is until somebody deletes it or it
// expires.
var ErrForeignRecord = errors.New("the key holds no record of this program: delete it, or use a DEDUP_PREFIX of its own")

// isForeign tells that error by the script's own code, the server's code for a value of another type, and the codec's
// error.
func isForeign(err error) bool {
	if err == nil {
		return false
	}
	return errors.Is(err, errCorrupt) || strings.Contains(err.Error(), "NORECORD ") || strings.Contains(err.Error(), "WRONGTYPE ")
}
