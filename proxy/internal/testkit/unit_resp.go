package testkit

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// respSplitters return the two sides of one Redis connection. Replies come in the order of the commands, so that each
// reply is given the words of its command.
func respSplitters() [2]splitter {
	open := &openCommands{}
	return [2]splitter{
		ToServer: &commandSplitter{open: open, messages: messageSplitter{length: respLength}},
		ToClient: &replySplitter{open: open, messages: messageSplitter{length: respLength}},
	}
}

// openCommands are sent and not answered yet.
type openCommands struct {
	mu    sync.Mutex
	queue [][]string
}

func (o *openCommands) push(command []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queue = append(o.queue, command)
}

func (o *openCommands) pop() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) == 0 {
		return nil
	}
	command := o.queue[0]
	o.queue = o.queue[1:]
	return command
}

type commandSplitter struct {
	open     *openCommands
	messages messageSplitter
}

func (s *commandSplitter) split(chunk []byte) []Unit {
	units := s.messages.split(chunk)
	for i := range units {
		units[i].Command = respWords(units[i].Data)
		s.open.push(units[i].Command)
	}
	return units
}

type replySplitter struct {
	open     *openCommands
	messages messageSplitter
}

func (s *replySplitter) split(chunk []byte) []Unit {
	units := s.messages.split(chunk)
	for i := range units {
		if units[i].Data[0] != '>' { // pushed by the server, an answer to nothing
			units[i].Command = s.open.pop()
		}
	}
	return units
}

// RedisOp matches a call of a script with several operations, of which one has that name, and holds each of the having texts
// in some word or its key. ToServer that is the command; ToClient it is the reply to it, unless that says NOSCRIPT, when
// nothing was done and the script is sent again.
func RedisOp(name string, having ...string) Match {
	return func(u Unit) bool {
		if u.Direction == ToClient && bytes.HasPrefix(u.Data, []byte("-NOSCRIPT")) {
			return false
		}
		return slices.ContainsFunc(scriptOperations(u.Command), func(operation []string) bool {
			return operation[1] == name && !slices.ContainsFunc(having, func(text string) bool {
				return !slices.ContainsFunc(operation, func(word string) bool { return strings.Contains(word, text) })
			})
		})
	}
}

// RedisCommand matches a command by its name, or the reply to it.
func RedisCommand(name string) Match {
	return func(u Unit) bool { return len(u.Command) > 0 && strings.EqualFold(u.Command[0], name) }
}

// scriptOperations returns the operations of a call, each with its key, its name and its further words: EVAL script count key... and
// for each key how many words follow, and these.
func scriptOperations(command []string) [][]string {
	if len(command) < 3 || !(strings.EqualFold(command[0], "EVAL") || strings.EqualFold(command[0], "EVALSHA")) {
		return nil
	}
	keys, err := strconv.Atoi(command[2])
	if err != nil || keys < 0 || 3+keys > len(command) {
		return nil
	}
	var operations [][]string
	rest := command[3+keys:]
	for _, key := range command[3 : 3+keys] {
		if len(rest) == 0 {
			return nil
		}
		words, err := strconv.Atoi(rest[0])
		if err != nil || words < 1 || words >= len(rest) {
			return nil
		}
		operations = append(operations, append([]string{key}, rest[1:1+words]...))
		rest = rest[1+words:]
	}
	return operations
}

// respLength returns the length of the RESP2 or RESP3 value that data begins with, or 0 when it is not whole. An inline
// command counts as a line.
func respLength(data []byte) int {
	line := bytes.Index(data, []byte("\r\n"))
	if line < 0 {
		return 0
	}
	end := line + 2
	if line == 0 {
		return end
	}
	size, _ := strconv.Atoi(string(data[1:line]))
	switch data[0] {
	case '$', '=', '!':
		if size < 0 {
			return end // null
		}
		if end += size + 2; end > len(data) {
			return 0
		}
		return end
	case '*', '~', '>':
		return respElements(data, end, size)
	case '%':
		return respElements(data, end, 2*size)
	default:
		return end
	}
}

func respElements(data []byte, at, count int) int {
	for range max(0, count) {
		n := respLength(data[at:])
		if n == 0 {
			return 0
		}
		at += n
	}
	return at
}

// respWords reads a command: an array of bulk strings.
func respWords(data []byte) []string {
	if data[0] != '*' {
		return strings.Fields(string(data))
	}
	var words []string
	at := bytes.Index(data, []byte("\r\n")) + 2
	for at < len(data) {
		n := respLength(data[at:])
		if n == 0 || data[at] != '$' {
			return words
		}
		head := bytes.Index(data[at:], []byte("\r\n")) + 2
		words = append(words, string(data[at+head:at+n-2]))
		at += n
	}
	return words
}
