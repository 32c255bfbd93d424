package testkit

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
)

// account is the user that a broker runs as. The zero value is the user of this process.
type account struct {
	uid, gid int
	setpriv  string // empty: no change of user
}

// brokerAccount is the user rabbitmq when this process is root and there is one: a broker refuses little as root, but
// its files would then belong to root, unlike anywhere else.
func brokerAccount(where root) (account, error) {
	if os.Geteuid() != 0 {
		return account{}, nil
	}
	u, err := where.user("rabbitmq")
	if errors.As(err, new(user.UnknownUserError)) {
		return account{}, nil
	}
	if err != nil {
		return account{}, fmt.Errorf("look up user rabbitmq: %w", err)
	}
	setpriv, err := where.lookUp("setpriv")
	if err != nil {
		return account{}, fmt.Errorf("find setpriv (package util-linux): %w", err)
	}
	uid, uidErr := strconv.Atoi(u.Uid)
	gid, gidErr := strconv.Atoi(u.Gid)
	return account{uid: uid, gid: gid, setpriv: setpriv}, errors.Join(uidErr, gidErr)
}

// user looks a user up in the root's own /etc/passwd: the same name has another number there.
func (r root) user(name string) (*user.User, error) {
	if r == "" {
		return user.Lookup(name)
	}
	text, err := os.ReadFile(r.path("/etc/passwd"))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) { // name:password:uid:gid:..., see passwd(5)
		if fields := strings.Split(line, ":"); len(fields) > 3 && fields[0] == name {
			return &user.User{Username: name, Uid: fields[2], Gid: fields[3]}, nil
		}
	}
	return nil, user.UnknownUserError(name)
}

// wrap returns a command line that runs path as the account. It must not be su or runuser: these open a session of
// their own, and a signal to the group would miss what runs in it.
func (a account) wrap(path string, args ...string) (string, []string) {
	if a.setpriv == "" {
		return path, args
	}
	return a.setpriv, append([]string{
		fmt.Sprintf("--reuid=%d", a.uid), fmt.Sprintf("--regid=%d", a.gid), "--clear-groups", "--", path,
	}, args...)
}

// own gives a folder and all in it to the account.
func (a account) own(dir string) error {
	if a.setpriv == "" {
		return nil
	}
	return filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chown(path, a.uid, a.gid)
	})
}
