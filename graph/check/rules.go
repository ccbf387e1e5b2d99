package check

// All lists the rules in catalogue order.
func All() []Rule {
	return []Rule{
		pcieWidthDegraded,
		pcieSpeedDegraded,
		pciePathBottleneck,
		nvlinkDown,
		nvlinkUneven,
		nvlinkAbsent,
		fabricNotReady,
		hcaPortDown,
		hcaRateLow,
		hcaFarFromGPU,
		numaUnknown,
		numaImplausible,
		vmFlatPCI,
		envUnknown,
		envVersion,
		envBadValue,
		envRisky,
		envConflict,
		envFileSyntax,
		envSocketIfname,
		envIBHCAPrefix,
		envIBHCASubset,
		envIBHCAMissing,
		envGIDIndex,
		envAlgoForced,
		envLevelForced,
		envChannelsCapped,
		sourceConflict,
		hostDiffers,
		versionsMixed,
		envDisablesTransport, // last: it asks what the others found
	}
}

// Find returns the rule of an id.
func Find(id string) (Rule, bool) {
	for _, r := range All() {
		if r.ID == id {
			return r, true
		}
	}
	return Rule{}, false
}
