# ncclmap. `make run` does the main job, `make test` runs the tests; both need
# Go, gcc, make and git, nothing else.
GO       ?= go
BIN      := bin
OUT      ?= out
FUZZTIME ?= 20s
export CGO_CFLAGS := -Wno-deprecated-declarations
VERSION  := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS  := -s -w -X main.version=$(VERSION)
SOURCES  := $(shell find cmd probe graph tune render fixtures -name '*_test.go' -prune -o -type f -print) go.mod go.sum

.PHONY: run build build-nocgo build-arm64 install test race lint fuzz bench golden clean help

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: build ## map this machine's GPUs, or the recorded example, into OUT (out/)
	@if [ -n "$$(ls /proc/driver/nvidia/gpus 2>/dev/null)" ]; then $(BIN)/ncclmap report -d $(OUT) --fail-on never; \
	else echo "no NVIDIA GPU here: mapping the recorded machine example:2xh200-vm"; $(BIN)/ncclmap report example:2xh200-vm -d $(OUT); fi

build: $(BIN)/ncclmap $(BIN)/ncclmap-graphviz ## both programs into bin/

$(BIN)/ncclmap: $(SOURCES)
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $@ ./cmd/ncclmap

$(BIN)/ncclmap-graphviz: $(SOURCES)
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o $@ ./cmd/ncclmap-graphviz

build-nocgo: ## both programs without cgo (every file source works)
	CGO_ENABLED=0 $(GO) build ./...

build-arm64: ## both programs for arm64 with cgo, for Grace hosts (needs a cross gcc, gcc-aarch64-linux-gnu on Debian)
	CGO_ENABLED=1 GOARCH=arm64 CC=aarch64-linux-gnu-gcc $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/arm64/ncclmap ./cmd/ncclmap
	CGO_ENABLED=0 GOARCH=arm64 $(GO) build -trimpath -ldflags '-s -w' -o $(BIN)/arm64/ncclmap-graphviz ./cmd/ncclmap-graphviz

install: build ## both programs into PREFIX/bin (default /usr/local)
	install -D -m 755 $(BIN)/ncclmap $(DESTDIR)$(or $(PREFIX),/usr/local)/bin/ncclmap
	install -D -m 755 $(BIN)/ncclmap-graphviz $(DESTDIR)$(or $(PREFIX),/usr/local)/bin/ncclmap-graphviz

test: ## all tests
	$(GO) test ./...

race: ## all tests under the race detector, without those that only move much data
	$(GO) test -race -short -timeout 30m ./...

lint: ## gofmt, vet, staticcheck
	@bad=$$(gofmt -l cmd probe graph tune render fixtures); test -z "$$bad" || { echo "not gofmt-ed:"; echo "$$bad"; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

# The fuzzer sometimes reports its own end of time as a failure ("context
# deadline exceeded", go.dev/issue/48157); only an input that fails counts.
fuzz: ## each fuzz target for FUZZTIME (20s)
	@set -e; log=$$(mktemp); trap 'rm -f "$$log"' EXIT; for pkg in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "fuzz $$pkg $$f"; \
	    $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$pkg >"$$log" 2>&1 || \
	      { grep -q 'context deadline exceeded' "$$log" && ! grep -q 'Failing input' "$$log"; } || { cat "$$log"; exit 1; }; \
	    grep '^fuzz: elapsed' "$$log" | tail -n 1; \
	  done; done

bench: ## benchmarks of the hot paths
	$(GO) test -run '^$$' -bench . -benchmem ./...

golden: ## rewrite the golden files
	UPDATE_GOLDEN=1 $(GO) test -count=1 ./...

clean: ## remove what make built
	rm -rf $(BIN) $(OUT)
