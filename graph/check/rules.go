package check

// All lists the rules in catalogue order.
func All() []Rule {
	return []Rule{
		pcieWidthDegraded,
		pcieSpeedDegraded,
		pcieSlotNarrow,
		pcieUneven,
		pciePathBottleneck,
		pcieSharedUplink,
		pcieSpeedUnreadable,
		pcieErrors,
		acsRedirectsP2P,
		iommuTranslates,
		nvlinkDown,
		nvlinkUneven,
		nvlinkAbsent,
		nvlinkErrors,
		nvlinkRingBroken,
		fabricNotReady,
		cpuMaskOverlap,
		cpuMaskMismatch,
		cpuCgroupNarrow,
		cpuNPS1P2P,
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
		gpuFaulted,
		gpuMissing,
		gpuThrottled,
		gpuModeRestrictive,
		gpuModelsMixed,
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
