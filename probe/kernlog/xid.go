package kernlog

import "slices"

// Xid explains one error report of the NVIDIA driver. Codes and what NVIDIA
// asks for: docs.nvidia.com/deploy/xid-errors; the severity is ours, for whether
// a job over several GPUs may start.
type Xid struct {
	Code     int
	Name     string
	Meaning  string
	Act      string // who does what
	Severity Severity
}

// XidOf returns the explanation of a code. A code that is not in the table is a
// warning without one.
func XidOf(code int) (Xid, bool) {
	if i, ok := slices.BinarySearchFunc(xids, code, func(x Xid, code int) int { return x.Code - code }); ok {
		return xids[i], true
	}
	return Xid{Code: code, Severity: Warning}, false
}

const (
	actApp     = "the job's owner: look for the fault in the program"
	actFollow  = "nobody by itself: look at the report before it"
	actReset   = "administrator: drain the GPU and reset it"
	actReplace = "administrator: reset the GPU; if it comes back, replace the board"
	actReboot  = "administrator: drain the host and reboot it"
	actPower   = "administrator: take the host's power off and on, then check seating, riser and power of the board"
	actLink    = "administrator: check the NVLink of the GPU and its partner, reset both; if it comes back, replace"
	actNVLink5 = "administrator: reboot the host; the fabric may stay wedged until then"
	actWatch   = "nobody now; watch whether it grows"
	actRetire  = "administrator: reset the GPU when the job is done, so that the row is replaced"
	actSupport = "administrator: collect nvidia-bug-report.sh and ask the vendor"
)

// xids is sorted by code.
var xids = []Xid{
	{8, "channel timeout", "work on a channel made no progress", actApp, Warning},
	{13, "graphics engine exception", "a kernel did something the GPU refuses, mostly an access out of bounds", actApp, Info},
	{31, "memory page fault", "a kernel touched an address that is not mapped", actApp, Info},
	{32, "bad push buffer", "the driver's command stream arrived damaged, over PCIe or from memory", actSupport, Warning},
	{38, "firmware watchdog", "the driver's firmware did not answer", actReset, Warning},
	{39, "copy engine fault", "a copy engine met an error", actApp, Warning},
	{43, "channel reset", "a program's work was stopped after a fault of its own", actApp, Info},
	{45, "channel cleanup", "a program's channels were torn down, at its end or after another report", actFollow, Info},
	{46, "GPU stopped processing", "the GPU stopped executing work", actReset, Critical},
	{48, "uncorrected memory error", "two bits of a memory word flipped; data is lost", actReplace, Critical},
	{56, "display engine error", "the display engine met an error", actSupport, Info},
	{57, "memory link training", "the GPU's memory interface could not be trained", actReplace, Critical},
	{58, "memory clock training", "the GPU's memory interface became unstable", actReplace, Critical},
	{61, "power unit breakpoint", "the power management unit stopped", actReset, Warning},
	{62, "power unit halt", "the power management unit halted; the GPU is not usable", actReset, Critical},
	{63, "row remap recorded", "a bad memory row is to be replaced at the next reset", actRetire, Warning},
	{64, "row remap failed", "a bad memory row could not be recorded for replacement", actReplace, Critical},
	{65, "video engine error", "the video engine met an error", actApp, Info},
	{66, "illegal access", "a driver refused an access", actApp, Info},
	{68, "video decoder exception", "the video decoder met an error", actApp, Info},
	{69, "graphics class error", "a program used the graphics engine in a way it refuses", actApp, Info},
	{74, "NVLink error", "an NVLink of the GPU met an error it could not hide", actLink, Critical},
	{78, "vGPU start", "a virtual GPU could not start", actSupport, Warning},
	{79, "GPU off the bus", "the GPU no longer answers on PCIe", actPower, Critical},
	{80, "corrupted data to GPU", "what came over PCIe was damaged", actSupport, Critical},
	{81, "display adapter error", "a display subsystem failed", actSupport, Info},
	{92, "many corrected errors", "single-bit memory errors come unusually often", actWatch, Info},
	{93, "InfoROM write", "the board's information memory could not be written", actSupport, Warning},
	{94, "contained memory error", "an uncorrected memory error hit one program, which was stopped; others run on", actRetire, Warning},
	{95, "uncontained memory error", "an uncorrected memory error may have reached every program on the GPU", actReset, Critical},
	{109, "context switch timeout", "the GPU could not switch between programs", actReset, Warning},
	{110, "security fault", "the GPU's security unit stopped it", actReset, Critical},
	{119, "GSP timeout", "the GPU's system processor did not answer a call of the driver", actReset, Critical},
	{120, "GSP error", "the GPU's system processor failed", actReset, Critical},
	{121, "C2C error", "the link between GPU and CPU met an error that was corrected", actWatch, Warning},
	{122, "SPI read", "the board's flash memory could not be read", actSupport, Warning},
	{123, "SPI timeout", "the board's flash memory did not answer", actReset, Warning},
	{125, "InfoROM fault", "the board's information memory is damaged", actSupport, Warning},
	{136, "link training failed", "an NVLink did not come up", actReset, Critical},
	{137, "NVLink privilege error", "a peer's access over NVLink was refused, mostly after a fault of the program", actApp, Warning},
	{140, "unrecovered ECC error", "an uncorrected memory error was found outside the usual path", actReset, Critical},
	{143, "GPU initialisation", "the GPU could not be initialised", actReset, Critical},
	{144, "NVLink SAW error", "the NVLink unit's system attachment met an error", actNVLink5, Critical},
	{145, "NVLink RLW error", "the NVLink unit's remote wrapper met an error", actNVLink5, Critical},
	{146, "NVLink TLW error", "the NVLink unit's transaction wrapper met an error", actNVLink5, Critical},
	{147, "NVLink TREX error", "the NVLink unit's transmit buffers met an error", actNVLink5, Critical},
	{148, "NVLink NVLPW error", "the NVLink unit's port wrapper met an error", actNVLink5, Critical},
	{149, "NVLink NETIR error", "an NVLink went down or lost its quality", actNVLink5, Critical},
	{150, "NVLink MSE error", "the NVLink management engine met an error", actNVLink5, Critical},
	{151, "key rotation", "keys of confidential computing could not be renewed", actReset, Warning},
	{154, "recovery action changed", "the driver says what the GPU needs before it can be used again", "administrator: do what the text names", Critical},
	{155, "NVLink software error", "an NVLink was declared down by its software", actReset, Critical},
	{156, "resource retired", "a part of the GPU was taken out of use", actRetire, Warning},
	{157, "resource retirement failed", "a part of the GPU could not be taken out of use", actReplace, Critical},
}

// sxids explains the switch reports that are met most. Source: NVIDIA Fabric
// Manager user guide, NVSwitch SXid errors.
var sxids = []struct {
	code    int
	meaning string
}{
	{11004, "a GPU asked for memory it may not reach, mostly a fault of the program"},
	{12028, "answers for a GPU that is gone or being reset"},
	{14017, "a packet went round too long"},
	{19084, "the far end of a link stopped sending signs of life"},
	{20001, "data on a link was sent again"},
	{20009, "a link loses packets at a raised rate"},
	{20034, "a link went down"},
	{22012, "the firmware of a link asked for attention"},
}

// SXidMeaning explains a switch report, "" where the code is not in the table;
// fatal or not is said by the message.
func SXidMeaning(code int) string {
	for _, x := range sxids {
		if x.code == code {
			return x.meaning
		}
	}
	return ""
}
