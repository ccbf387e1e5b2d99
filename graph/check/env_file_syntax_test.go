package check

import "testing"

func TestEnvFileSyntax(t *testing.T) {
	testEnv(t, "env-file-syntax", []envCase{
		{name: "quotes in nccl.conf", text: "nccl.conf:\nNCCL_IB_HCA=\"mlx5_0\"\n", want: []string{"warning sure file:nccl.conf env:NCCL_IB_HCA"}, says: []string{"line 1 (NCCL_IB_HCA): the quotes become"}},
		{name: "export in nccl.conf", text: "nccl.conf:\nexport NCCL_DEBUG=WARN\n", want: []string{"warning sure file:nccl.conf env:NCCL_DEBUG"}},
		{name: "blanks in nccl.conf", text: "nccl.conf:\nNCCL_DEBUG = WARN\nNCCL_NET=IB \n", want: []string{"warning sure file:nccl.conf env:NCCL_DEBUG env:NCCL_NET"}},
		{name: "comment in nccl.conf", text: "nccl.conf:\nNCCL_DEBUG=WARN # quiet\n", want: []string{"warning sure file:nccl.conf env:NCCL_DEBUG"}},
		{name: "~ in nccl.conf", text: "nccl.conf:\nNCCL_TOPO_FILE=~/topo.xml\n", want: []string{"warning sure file:nccl.conf env:NCCL_TOPO_FILE"}},
		{name: "CR before 2.30.7", text: "nccl.conf:\nNCCL_NET=IB\r\n", nccl: "2.28.3", want: []string{"warning sure file:nccl.conf env:NCCL_NET"}},
		{name: "CR, version not known", text: "nccl.conf:\nNCCL_NET=IB\r\n", want: []string{"warning likely file:nccl.conf env:NCCL_NET"}},
		{name: "CR from 2.30.7", text: "nccl.conf:\nNCCL_NET=IB\r\n", nccl: "2.30.7"},
		{name: "quotes in an env file", text: "NCCL_IB_HCA=\"mlx5_0\"\n", want: []string{"info possible file:job.env env:NCCL_IB_HCA"}},
		{name: "comment in an env file", text: "NCCL_DEBUG=WARN # quiet\n", want: []string{"warning likely file:job.env env:NCCL_DEBUG"}},
		{name: "shell", text: "export NCCL_IB_HCA=\"mlx5_0\" # quiet\nexport NCCL_TOPO_FILE=~/topo.xml\n"},
		{name: "lost in a shell", text: "export NCCL_DEBUG = WARN\n", want: []string{"warning sure file:job.env env:NCCL_DEBUG"}},
		{name: "plain", text: "# settings\nNCCL_IB_HCA==mlx5_0\nNCCL_DEBUG=WARN\n"},
		{name: "plain nccl.conf", text: "nccl.conf:\n# settings\nNCCL_IB_HCA==mlx5_0\n"},
	})
}

// Quotes explain the value that NCCL then does not know.
func TestEnvFileSyntaxReplaces(t *testing.T) {
	testEnv(t, "env-bad-value", []envCase{{name: "quotes", text: "nccl.conf:\nNCCL_ALGO=\"Ring\"\n", nccl: "2.28.3"}})
	testEnv(t, "env-file-syntax", []envCase{{name: "quotes", text: "nccl.conf:\nNCCL_ALGO=\"Ring\"\n", nccl: "2.28.3", want: []string{"critical sure file:nccl.conf env:NCCL_ALGO"}}})
}
