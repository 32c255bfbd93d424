package proxy

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// rawFrame builds one, with its mark.
func rawFrame(kind byte, payload []byte) []byte {
	b := []byte{kind, 0, 1}
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	return append(append(b, payload...), 0xce)
}

func long(b string) string { return string(binary.BigEndian.AppendUint32(nil, uint32(len(b)))) + b }

// content is the payload of a content header with these flags and what they announce.
func content(flags uint16, properties string) []byte {
	b := append([]byte{0, 60, 0, 0}, make([]byte, 8)...)
	return append(binary.BigEndian.AppendUint16(b, flags), properties...)
}

const eight = "LLLLLLLL" // a value that looks like types

func TestLongLongs(t *testing.T) {
	table := func(kind string) string {
		return "\x01a" + kind + eight + "\x01LS" + long("L"+eight) + // a name and a text that hold the letter
			"\x01bA" + long(kind+eight+"V"+"F"+long("\x00"+kind+eight)+"t\x01"+"D\x02LLLL"+"x"+long("LL")) +
			"\x01cI\x00\x00\x00L" + "\x01ssLL" + "\x01dfLLLL" + "\x01eF" + long("\x01f"+kind+eight)
	}
	for name, tt := range map[string]struct{ sent, read []byte }{
		"headers alone":         {content(1<<13, long(table("L"))), content(1<<13, long(table("l")))},
		"after both properties": {content(7<<13, "\x01L\x03LLL"+long(table("L"))+"rest L"), content(7<<13, "\x01L\x03LLL"+long(table("l"))+"rest L")},
		"no headers":            {content(3<<14, "\x01L\x03LLL"), content(3<<14, "\x01L\x03LLL")},
		"more flags":            {content(1<<13|1, long(table("L"))), content(1<<13|1, long(table("L")))},
		"cut short":             {content(1<<13, long(table("L"))[:40]), content(1<<13, long(table("L"))[:40])},
		"an unknown type":       {content(1<<13, long("\x01a?"+"\x01bL"+eight)), content(1<<13, long("\x01a?"+"\x01bL"+eight))},
		"no room for flags":     {[]byte{0, 60}, []byte{0, 60}},
	} {
		before, after := rawFrame(1, []byte("method L"+eight)), rawFrame(3, bytes.Repeat([]byte("L"+eight), 5000))
		stream := bytes.Join([][]byte{before, rawFrame(contentHeader, tt.sent), after, rawFrame(8, nil), rawFrame(contentHeader, tt.sent)}, nil)
		want := bytes.Join([][]byte{before, rawFrame(contentHeader, tt.read), after, rawFrame(8, nil), rawFrame(contentHeader, tt.read)}, nil)
		for how, reader := range map[string]io.Reader{
			"whole": bytes.NewReader(stream), "by halves": iotest.HalfReader(bytes.NewReader(stream)), "byte by byte": iotest.OneByteReader(bytes.NewReader(stream)),
		} {
			got, err := io.ReadAll(newLongLongConn(readerConn{reader: reader}))
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%s, read %s: %v (-want +got):\n%s", name, how, err, diff)
			}
		}
	}
}

// readerConn is a connection that can only be read.
type readerConn struct {
	net.Conn
	reader io.Reader
}

func (c readerConn) Read(p []byte) (int, error) { return c.reader.Read(p) }

// TestALargeHeaderFrameIsReadWhole has more properties than the buffer holds at first.
func TestALargeHeaderFrameIsReadWhole(t *testing.T) {
	table := func(kind string) []byte {
		return rawFrame(contentHeader, content(1<<13, long("\x01aS"+long(string(make([]byte, 100_000)))+"\x01b"+kind+eight)))
	}
	got, err := io.ReadAll(newLongLongConn(readerConn{reader: iotest.HalfReader(bytes.NewReader(table("L")))}))
	if err != nil || !bytes.Equal(got, table("l")) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// TestTheEndOfAConnectionIsPassedOn ends it within and between frames.
func TestTheEndOfAConnectionIsPassedOn(t *testing.T) {
	whole := rawFrame(contentHeader, content(1<<13, long("\x01aL"+eight)))
	for n := range len(whole) {
		got, err := io.ReadAll(newLongLongConn(readerConn{reader: bytes.NewReader(whole[:n])}))
		if want := n == 0; (err == nil) != want || len(got) != 0 {
			t.Errorf("after %d of %d bytes: %d handed on, %v", n, len(whole), len(got), err)
		}
	}
}

func FuzzTranslateProperties(f *testing.F) {
	f.Add(content(7<<13, "\x01L\x03LLL"+long("\x01aL"+eight+"\x01bA"+long("L"+eight))))
	f.Add(content(1<<13, long("\x01aF\xff\xff\xff\xff")))
	f.Fuzz(func(t *testing.T, payload []byte) {
		got := bytes.Clone(payload)
		translateProperties(got)
		for i := range payload {
			if got[i] != payload[i] && (payload[i] != 'L' || got[i] != 'l') {
				t.Fatalf("byte %d became %q from %q", i, got[i], payload[i])
			}
		}
		again := bytes.Clone(got)
		if translateProperties(again); !bytes.Equal(again, got) {
			t.Fatal("not the same the second time")
		}
	})
}
