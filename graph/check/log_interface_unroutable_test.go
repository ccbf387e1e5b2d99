package check

import "testing"

func TestLogInterfaceUnroutable(t *testing.T) {
	testLog(t, "log-interface-unroutable", []logCase{
		{name: "loopback and link-local", log: lines(comm("ab", 1, "COMPLETE"), []string{"a0 Bootstrap : Using lo:127.0.0.1<0>", "b0 NET/Socket : Using [0]eth0:10.0.0.2<0> [1]eth1:fe80::1%eth1<0>"}),
			want: []string{"critical sure a/net:lo b/net:eth1"}, says: []string{"loopback 127.0.0.1", "link-local fe80::1%eth1", "NCCL_SOCKET_IFNAME"}},
		{name: "docker0", log: lines(comm("ab", 1, "COMPLETE"), []string{"a0 NET/Socket : Using [0]docker0:172.17.0.1<0>"}), want: []string{"critical likely a/net:docker0"}},
		{name: "169.254", log: lines(comm("ab", 1, "COMPLETE"), []string{"a0 Bootstrap: Using usb0:169.254.3.1<0>"}), want: []string{"critical sure a/net:usb0"}},
		{name: "the bootstrap uses the first of its list", log: lines(comm("ab", 1, "COMPLETE"), []string{"a0 Bootstrap : Using [0]eth0:10.0.0.1<0> [1]docker0:172.17.0.1<0>"})},
		{name: "a container's veth0 with a public address", log: lines(comm("ab", 1, "COMPLETE"), []string{"a0 Bootstrap : Using veth0:2a02:6b8::600a<0>"})},
		{name: "veth with a private one", log: lines(comm("ab", 1, "COMPLETE"), []string{"a0 Bootstrap : Using veth12:10.0.0.1<0>"}), want: []string{"critical likely a/net:veth12"}},
		{name: "none found", log: lines(comm("ab", 1, "START"), []string{"a0!bootstrap.cc:1 Bootstrap : no socket interface found"}), want: []string{"critical sure host:a"}},
		{name: "one host", log: lines(comm("a", 2, "COMPLETE"), []string{"a0 Bootstrap : Using lo:127.0.0.1<0>"})},
		{name: "how far the job reaches is not known", log: []string{"a0 Bootstrap : Using ip6tnl0:fe80::1%ip6tnl0<0>"}, gap: "whether the job spans hosts"},
		{name: "healthy", log: lines(comm("ab", 1, "COMPLETE"), []string{"a0 Bootstrap : Using eth0:10.0.0.1<0>", "b0 Bootstrap : Using bond0:10.0.0.2<0>"})},
	})
}
