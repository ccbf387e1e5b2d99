package check

// All lists the rules in catalogue order.
func All() []Rule {
	return []Rule{
		pcieWidthDegraded,
		pcieSpeedDegraded,
		pciePathBottleneck,
		acsRedirectsP2P,
		iommuTranslates,
		nvlinkDown,
		nvlinkUneven,
		nvlinkAbsent,
		nvlinkRingBroken,
		fabricNotReady,
		cpuMaskOverlap,
		cpuMaskMismatch,
		hcaNearNoGPU,
		hcaSharedByGPUs,
		hcaFunctionsSharePort,
		hcaBondOneQP,
		hcaGIDUnusable,
		hcaErrors,
		netVirtualInterfaces,
		topoInvalid,
		topoNVLinkTarget,
		topoNetAttributes,
		topoFileMismatch,
		topoNUMAWrong,
		topoDeviceUnplaced,
		vmEmulatedLink,
		pcieSharedUplink,
		hcaPortDown,
		hcaRateLow,
		hcaFarFromGPU,
		gdrUnavailable,
		numaUnknown,
		numaImplausible,
		vmFlatPCI,
		sourceConflict,
		hostDiffers,
		versionsMixed,
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
