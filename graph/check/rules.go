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
		nvlinkP2PDisabled,
		nvlinkRingBroken,
		fabricNotReady,
		fabricUnhealthy,
		imexMissing,

		gpuFaulted,
		gpuMissing,
		gpuThrottled,
		gpuModeRestrictive,
		gpuModelsMixed,

		hcaPortDown,
		hcaRateLow,
		hcaLinkLayerMixed,
		hcaFarFromGPU,
		hcaNearNoGPU,
		hcaSharedByGPUs,
		hcaFunctionsSharePort,
		hcaBondOneQP,
		hcaGIDUnusable,
		hcaErrors,
		gdrUnavailable,
		gdrDistance,
		netVirtualInterfaces,

		numaUnknown,
		numaImplausible,
		cpuMaskOverlap,
		cpuMaskMismatch,
		cpuCgroupNarrow,
		cpuNPS1P2P,

		vmFlatPCI,
		vmEmulatedLink,
		topoFileMismatch,
		topoNUMAWrong,
		topoDeviceUnplaced,
		topoInvalid,
		topoNVLinkTarget,
		topoNetAttributes,

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
