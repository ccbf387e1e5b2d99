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
		measuredBelowModel,
		measuredPairSlow,
		measuredDrops,
		measuredWrongData,
		measuredAlternativeBetter,
		measuredTooSmall,
		sourceConflict,
		hostDiffers,
		versionsMixed,
		jobRankMissing,
		jobRankBehind,
		jobAsyncError,
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
