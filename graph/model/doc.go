// Package model computes what NCCL itself believes a collective takes: for each
// algorithm and protocol a latency and an algorithm bandwidth, each as a list of
// terms that can be printed and checked one by one. It follows graph/search and
// takes values only.
//
// These are the figures by which NCCL chooses, not measurements: on the recorded
// machine they were off by a median 22 %.
package model
