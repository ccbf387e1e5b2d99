// Package compare sets what was measured beside what was predicted: for each
// measured point the time that NCCL itself believes and the time that ncclmap
// expects, and how far they are off. It follows graph/check, whose rules judge the
// measured figures themselves, and takes values only.
package compare
