package check

// All lists the rules in catalogue order.
func All() []Rule {
	return []Rule{
		pcieWidthDegraded,
		pcieSpeedDegraded,
		pciePathBottleneck,
		pcieSpeedUnreadable,
		nvlinkDown,
		nvlinkUneven,
		nvlinkAbsent,
		nvlinkP2PDisabled,
		fabricNotReady,
		fabricUnhealthy,
		imexMissing,
		hcaPortDown,
		hcaRateLow,
		hcaLinkLayerMixed,
		hcaFarFromGPU,
		gdrDistance,
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
		envDiffers,
		logSocketFallback,
		logPluginMissing,
		logInterfaceUnroutable,
		logSHMFallback,
		logNetIntraNode,
		logGDROff,
		gdrOneSided,
		logDMABUFFailed,
		logQPFailed,
		logPortError,
		logDuplicateGPU,
		logSearchFailed,
		logNVLSFailed,
		logVersionMixed,
		logAlgoUnavailable,
		shmTooSmall,
		memlockLow,
		verbsMissing,
		ncclCUDAMismatch,
		ncclGPUUnsupported,
		sourceConflict,
		hostDiffers,
		versionsMixed,
		jobRankMissing,
		jobRankBehind,
		jobAsyncError,
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
