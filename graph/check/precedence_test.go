package check

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func TestSettingsPrecedence(t *testing.T) {
	system, user, job := "nccl.conf:\nNCCL_ALGO=Ring\n", ".nccl.conf:\nNCCL_ALGO=Tree\n", "export NCCL_ALGO=NVLS\n"
	for _, c := range []struct {
		name  string
		texts []string
		log   string
		here  []string // in this process
		want  string
		why   string
	}{
		{"only the system's file", []string{system}, "", nil, "Ring", "nothing else"},
		{"the user's before the system's", []string{system, user}, "", nil, "Tree", "before /etc/nccl.conf"},
		{"the environment before both", []string{system, user, job}, "", nil, "NVLS", "environment comes first"},
		{"this process", []string{system}, "", []string{"PAT"}, "PAT", "environment comes first"},
		{"empty blocks", []string{system}, "", []string{""}, "", "NCCL takes its default"},
		{"a log before all", []string{system, job}, "NCCL_ALGO=Tree", nil, "Tree", "says in the log"},
		{"two env files", []string{job, "NCCL_ALGO=Ring\n"}, "", nil, "?", "which comes last"},
		{"two env files that agree", []string{job, job}, "", nil, "NVLS", "nothing else"},
		{"processes differ", nil, "NCCL_ALGO=Tree NCCL_ALGO=Ring", nil, "?", "different values"},
		{"a branch", []string{"#!/bin/sh\nif x; then export NCCL_ALGO=Ring; fi\n"}, "", nil, "?", "branch"},
		{"the first line of nccl.conf", []string{"nccl.conf:\nNCCL_ALGO=Ring\nNCCL_ALGO=Tree\n"}, "", nil, "Ring", "nothing else"},
		{"lost", []string{"nccl.conf:\nexport NCCL_ALGO=Ring\n"}, "", nil, "?", "nobody sets it"},
		{"unset", []string{"export NCCL_ALGO=Ring\nunset NCCL_ALGO\n", system}, "", nil, "Ring", "nothing else"},
		{"the last line of a shell", []string{"export NCCL_ALGO=Ring\nexport NCCL_ALGO=Tree\n"}, "", nil, "Tree", "nothing else"},
	} {
		var j probe.Job
		for _, text := range c.texts {
			j.Env = append(j.Env, settingsOf(t, text, "")...)
		}
		j.Env = append(j.Env, settingsOf(t, "", c.log)...)
		for _, v := range c.here {
			j.Env = append(j.Env, probe.EnvSetting{Name: "NCCL_ALGO", Value: v, How: probe.EnvProcess})
		}
		got := Settings(&j)
		if len(got) != 1 || got[0].Value.Or("?") != c.want || !strings.Contains(got[0].Why, c.why) {
			t.Errorf("%s: %+v, want %q, %q", c.name, got, c.want, c.why)
		}
	}
	if got := Settings(&probe.Job{}); got == nil || len(got) != 0 {
		t.Error(fmt.Sprint(got))
	}
}
