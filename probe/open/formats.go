package open

import (
	"bytes"
	"io"
	"slices"

	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/flightrec"
	"github.com/ncclmap/ncclmap/probe/hwlocxml"
	"github.com/ncclmap/ncclmap/probe/ibstatus"
	"github.com/ncclmap/ncclmap/probe/inspector"
	"github.com/ncclmap/ncclmap/probe/kernlog"
	"github.com/ncclmap/ncclmap/probe/ncclenv"
	"github.com/ncclmap/ncclmap/probe/nccllog"
	"github.com/ncclmap/ncclmap/probe/ncclras"
	"github.com/ncclmap/ncclmap/probe/nccltests"
	"github.com/ncclmap/ncclmap/probe/ncclxml"
	"github.com/ncclmap/ncclmap/probe/nvbandwidth"
	"github.com/ncclmap/ncclmap/probe/nvml"
	"github.com/ncclmap/ncclmap/probe/smiquery"
	"github.com/ncclmap/ncclmap/probe/smitopo"
)

// The kinds of source, as users see them.
const (
	kindInventory = "ncclmap inventory"
	kindCluster   = "ncclmap cluster"
	kindNVML      = "NVML recording"
	kindNCCLXML   = "NCCL topology XML"
	kindGraphXML  = "NCCL graph XML"
	kindSMITopo   = "nvidia-smi topo -m"
	kindNCCLLog   = "NCCL log"
	kindNCCLTests = "nccl-tests output"
	kindSummary   = "summary of nccl-tests runs"
	kindNVBand    = "nvbandwidth output"
	kindKernLog   = "kernel log"
	kindSMIQuery  = "nvidia-smi -q, nvlink or topo -p2p"
	kindIBStatus  = "ibstatus"
	kindHwlocXML  = "hwloc XML"
	kindEnv       = "NCCL settings (env file, shell, nccl.conf, launcher, YAML)"
	kindInspector = "NCCL Inspector records"
	kindNCCLRAS   = "ncclras report"
	kindFlightRec = "PyTorch flight recorder dump"
	kindRoot      = "recorded root"
)

// format is one kind of text: how it is recognised and read. Formats are tried
// in order, by content only. A document is the whole text, which may be a stream;
// other formats may stand in one text together, as people paste them.
type format struct {
	kind     string
	document bool
	sniff    func(head []byte) bool
	// One of the two reads the text; stream reads one without end.
	read   func(name string, text []byte) ([]*probe.Inventory, error)
	stream func(name string, r io.Reader) ([]*probe.Inventory, error)
}

var formats = []format{
	{kind: kindCluster, document: true, sniff: isJSONWith(`"` + probe.ClusterSchema + `"`), read: func(name string, text []byte) ([]*probe.Inventory, error) {
		c, err := probe.DecodeCluster(name, text)
		if err != nil {
			return nil, err
		}
		return c.Inventories(), nil
	}},
	{kind: kindInspector, document: true, sniff: inspector.Sniff, stream: streamed(inspector.Read, (*inspector.Dump).Inventories)},
	{kind: kindFlightRec, document: true, sniff: flightrec.Sniff, stream: streamed(flightrec.Read, (*flightrec.Dump).Inventories)},
	{kind: kindNCCLRAS, document: true, sniff: ncclras.Sniff, stream: streamed(ncclras.Read, (*ncclras.Report).Inventories)},
	{kind: kindInventory, document: true, sniff: isJSONWith(`"schema"`), read: one(probe.Decode)},
	{kind: kindNVML, document: true, sniff: isJSONWith(`"nvml"`, `"gpus"`), read: one(nvml.Replay)},
	{kind: kindNCCLXML, document: true, sniff: ncclxml.Sniff, read: readNCCLXML},
	{kind: kindGraphXML, document: true, sniff: ncclxml.SniffGraphs, read: one(fromReader(ncclxml.DecodeGraphs))},
	{kind: kindHwlocXML, document: true, sniff: hwlocxml.Sniff, read: one(fromReader(hwlocxml.Decode))},
	{kind: kindSMITopo, sniff: smitopo.Sniff, read: one(fromReader(smitopo.Decode))},
	{kind: kindSMIQuery, sniff: smiquery.Sniff, read: one(fromReader(smiquery.Decode))},
	{kind: kindIBStatus, sniff: ibstatus.Sniff, read: one(fromReader(ibstatus.Decode))},
	{kind: kindNCCLTests, sniff: nccltests.Sniff, stream: streamed(nccltests.Read, (*nccltests.Output).Inventories)},
	{kind: kindSummary, document: true, sniff: nccltests.SniffSummary, read: one(fromReader(nccltests.ReadSummary))},
	{kind: kindNCCLLog, sniff: nccllog.Sniff, stream: streamed(nccllog.Read, (*nccllog.Log).Inventories)},
	{kind: kindNVBand, sniff: nvbandwidth.Sniff, stream: streamed(nvbandwidth.Read, func(o *nvbandwidth.Output) []*probe.Inventory {
		return []*probe.Inventory{o.Inventory()}
	})},
	{kind: kindEnv, document: true, sniff: ncclenv.Sniff, read: one(fromReader(func(name string, r io.Reader) (*probe.Inventory, error) {
		f, err := ncclenv.Parse(name, r)
		if err != nil {
			return nil, err
		}
		return f.Inventory(), nil
	}))},
	{kind: kindKernLog, sniff: kernlog.Sniff, stream: streamed(kernlog.Read, (*kernlog.Log).Inventories)},
}

// Kinds lists what is recognised, for help texts and errors.
func Kinds() []string {
	var out []string
	for _, f := range formats {
		out = append(out, f.kind)
	}
	return append(out, kindRoot+" (a directory that holds sys/ or proc/)", ExamplePrefix+"NAME")
}

type decoder = func(name string, text []byte) (*probe.Inventory, error)

// one adapts a reader of one host.
func one(decode decoder) func(string, []byte) ([]*probe.Inventory, error) {
	return func(name string, text []byte) ([]*probe.Inventory, error) {
		inv, err := decode(name, text)
		if err != nil {
			return nil, err
		}
		return []*probe.Inventory{inv}, nil
	}
}

func fromReader(decode func(string, io.Reader) (*probe.Inventory, error)) decoder {
	return func(name string, text []byte) (*probe.Inventory, error) { return decode(name, bytes.NewReader(text)) }
}

// streamed adapts a reader of endless text.
func streamed[D any](read func(string, io.Reader) (D, error), inventories func(D) []*probe.Inventory) func(string, io.Reader) ([]*probe.Inventory, error) {
	return func(name string, r io.Reader) ([]*probe.Inventory, error) {
		doc, err := read(name, r)
		if err != nil {
			return nil, err
		}
		return inventories(doc), nil
	}
}

// readNCCLXML reads a topology file: of one host, or of the hosts of an NVLink
// domain.
func readNCCLXML(name string, text []byte) ([]*probe.Inventory, error) {
	doc, err := ncclxml.Decode(name, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	var out []*probe.Inventory
	for _, host := range doc.Hosts() {
		inv, err := host.Inventory()
		if err != nil {
			return nil, err
		}
		out = append(out, inv)
	}
	return out, nil
}

// isJSONWith recognises a JSON object whose text holds all the given keys.
func isJSONWith(keys ...string) func([]byte) bool {
	return func(text []byte) bool {
		if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
			return false
		}
		return !slices.ContainsFunc(keys, func(k string) bool { return !bytes.Contains(text, []byte(k)) })
	}
}
