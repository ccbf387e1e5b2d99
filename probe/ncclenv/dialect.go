package ncclenv

// Dialect is a way to write settings down.
type Dialect string

// The dialects that texts are read in.
const (
	// Shell is for sourcing: export NAME=value, quoted where a POSIX shell needs
	// it. Launcher command lines and Slurm scripts are read as such.
	Shell Dialect = "sh"
	// Plain is NAME=value as docker --env-file and systemd's EnvironmentFile read
	// it: no export, no quotes, comments on lines of their own.
	Plain Dialect = "env"
	// Conf is nccl.conf, which NCCL itself reads: no export, no quotes, # in the
	// first column only.
	Conf Dialect = "nccl.conf"
	// YAML is the environment in a Kubernetes object or a compose file.
	YAML Dialect = "yaml"
	// Python is assignments to os.environ.
	Python Dialect = "python"
)

// The dialects that are written only; Parse reads the first two as Shell and the
// others as YAML.
const (
	Slurm        Dialect = "slurm"
	MPI          Dialect = "mpirun"
	ConfigMap    Dialect = "k8s"
	ContainerEnv Dialect = "k8s-env"
)
