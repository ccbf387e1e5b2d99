package open

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// known are texts that can be told with certainty and are not read: what they are,
// and what to give instead.
var known = []struct {
	what   string
	mark   *regexp.Regexp
	reason string
}{
	{"ibnetdiscover output", regexp.MustCompile(`(?m)^(?:Switch|Ca|Rt)[ \t]+\d+[ \t]+"[HSR]-[0-9a-f]{8,16}"`), "which is not read yet"},
	{"lspci output", regexp.MustCompile(`(?m)^(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] (?:3D|VGA compatible|Ethernet|Infiniband) controller`), "which is not read yet; give a recorded root (sys/ and proc/)"},
	{"the summary of nvidia-smi", regexp.MustCompile(`(?m)^\| NVIDIA-SMI \d`), "which shows no topology; give nvidia-smi topo -m and nvidia-smi -q -x"},
	{"a table of bandwidths that somebody made of nccl-tests results", regexp.MustCompile(`(?m)^.*\balgbw\b.*\bbusbw\b.*\n.*\d\.\d.*\d\.\d`), "without the columns of the tool (size, count, type); give the output itself"},
}

// refusal names a kind of text that has no reader: it counts as not recognised.
type refusal string

func (r refusal) Error() string        { return string(r) }
func (r refusal) Is(target error) bool { return target == ErrUnrecognised }

// refuse says of a text that no reader knows what it is, as far as that is sure.
func refuse(p place, text []byte) error {
	head := text[:min(len(text), 8192)]
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("\xfd7zXZ\x00")), bytes.HasPrefix(head, []byte("7z\xbc\xaf\x27\x1c")):
		return fmt.Errorf("%s: a zip, xz or 7z archive is %w; unpack it and name its folder", p.name, ErrUnrecognised)
	case bytes.IndexByte(head, 0) >= 0:
		return fmt.Errorf("%s: binary data %w; readable are: %s", p.name, ErrUnrecognised, strings.Join(Kinds(), ", "))
	}
	for _, k := range known {
		if k.mark.Match(text[:min(len(text), 256<<10)]) {
			return refusal(fmt.Sprintf("%s: %s, %s", p.name, k.what, k.reason))
		}
	}
	return fmt.Errorf("%s: text %w; readable are: %s", p.name, ErrUnrecognised, strings.Join(Kinds(), ", "))
}
