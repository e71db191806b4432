# ggufs: one Makefile for everything; `make help` lists the targets.
#
#   CC=clang                use another compiler (after make clean)
#   SAN=address,undefined   build with sanitizers, in a separate folder
#   DESTDIR=, PREFIX=       target of `make install`

VERSION := 0.1.0

PREFIX  ?= /usr/local
BINDIR  ?= $(PREFIX)/bin
LIBDIR  ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR  ?= $(PREFIX)/share/man
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR  ?= $(PREFIX)/share/zsh/site-functions
UNITDIR ?= $(PREFIX)/lib/systemd/system
DOCDIR  ?= $(PREFIX)/share/doc/ggufs

comma := ,
BUILD := build$(if $(SAN),/san-$(subst $(comma),-,$(SAN)))

PKGS := fuse3 libcjson libseccomp nettle
# STATIC=FOLDER: link the archives in FOLDER/lib, see contrib/packaging/static-libs
static = $(if $(STATIC),-L$(STATIC)/lib -Wl$(comma)-Bstatic$(comma)--exclude-libs$(comma)ALL $(1) -Wl$(comma)-Bdynamic,$(1))
# Libraries that only the runner needs.
RUNNER_LIBS := $(call static,-lpcre2-8 -lcjson -ledit -lseccomp -lunistring$(if $(STATIC), -lbsd -lmd -ltinfo))
# pkg-config runs once, and only for a compilation: `make deps` may install the packages first.
PKG_CFLAGS = $(eval PKG_CFLAGS := $(if $(STATIC),$(addprefix -isystem $(STATIC)/include,/ /fuse3 /cjson),$$(shell pkg-config --cflags $(PKGS))))$(PKG_CFLAGS)
PKG_LIBS   = $(eval PKG_LIBS := $(call static,$(if $(STATIC),-lfuse3 -lcjson -lseccomp -lnettle,$$(shell pkg-config --libs $(PKGS))) -lunistring))$(PKG_LIBS)

OBJCOPY  ?= objcopy
CFLAGS   ?= $(if $(SAN),-O1,-O2) -g
WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wno-unused-parameter
HARDEN   := $(if $(SAN),,-D_FORTIFY_SOURCE=2 -fstack-protector-strong)
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE -DGGUFS_VERSION='"$(VERSION)"' -I. $(PKG_CFLAGS) $(WARNINGS) \
             $(HARDEN) $(SANFLAGS) -pthread -fPIC -fno-semantic-interposition $(CPPFLAGS) $(CFLAGS)
# The tests are large programs that are linked often.
TEST_LINKER := $(if $(shell command -v ld.gold 2>/dev/null),-fuse-ld=gold)
ALL_LDFLAGS = -pthread -pie -Wl,-z,relro,-z,now $(SANFLAGS) $(LDFLAGS)

$(BUILD)/obj/fs/kernels/%.o $(BUILD)/obj/contrib/runner/%.o: ALL_CFLAGS += -fopenmp-simd

# No contraction of a*b+c: dequant/ must give the same bits everywhere, and the runner all but libm's.
$(BUILD)/obj/dequant/%.o $(BUILD)/obj/fs/kernels/%.o $(BUILD)/obj/contrib/runner/%.o $(BUILD)/obj/tests/kernels/%.o: ALL_CFLAGS += -ffp-contract=off

# The kernels are compiled once per kernel set of the architecture, with the compiler flags of the set.
MACHINE     := $(shell $(CC) -dumpmachine 2>/dev/null)
KERNEL_SETS := $(if $(filter x86_64-%,$(MACHINE)),avx2 avx512)$(if $(filter aarch64-%,$(MACHINE)),neon)
CPU_avx2    := -mavx2 -mf16c -mfma
CPU_avx512  := $(CPU_avx2) -mavx512f -mavx512bw -mavx512dq -mavx512vl
CPU_neon    :=
# Integer products use instructions beyond those of the set; dequant/kernels.c checks for them.
PRODUCTS_avx512 := -mavx512vnni

DEQUANT_SRC := $(wildcard dequant/*.c dequant/reference/*.c)
GGUF_SRC    := $(wildcard gguf/*.c gguf/legacy/*.c gguf/translate/*.c gguf/stores/*.c)
JINJA_SRC   := $(wildcard gguf/jinja/*.c)
SUPPORT_SRC := $(wildcard gguf/support/*.c gguf/models/*.c) $(JINJA_SRC)
FS_SRC      := $(filter-out fs/kernels/%,$(wildcard fs/*/*.c fs/*/*/*.c))
RUNNER_MAIN := contrib/runner/cli/run_main.c
RUNNER_SRC  := $(filter-out $(RUNNER_MAIN) contrib/runner/kernels/%,$(wildcard contrib/runner/*/*.c))
WRITER_SRC  := tests/writer/gguf_writer.c
SAMPLE_SRC  := $(WRITER_SRC) tests/writer/random_weights.c
UNIT_SRC    := $(wildcard tests/unit/*.c tests/unit/*/*.c tests/unit/*/*/*.c)
# Sources of the hostile files, without the programs in the same folder.
HOSTILE_SRC := $(wildcard tests/hostile/hostile*.c)
ZIP_SRC     := tests/unit/gguf/zip_file.c

obj = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
KERNEL_SRC  := $(wildcard dequant/kernels/*.c)
# The set without vectors has decoders alone; dequant/reference/ is the rest of it.
DECODER_SRC := $(addprefix dequant/kernels/kernels_,q.c k.c iq.c ik_q.c ik_k.c ik_kt.c ik_rows.c rows.c old.c)
KERNEL_OBJ  := $(foreach set,$(KERNEL_SETS),$(KERNEL_SRC:%.c=$(BUILD)/obj/%-$(set).o)) $(DECODER_SRC:%.c=$(BUILD)/obj/%-scalar.o)
DEQUANT_OBJ := $(call obj,$(DEQUANT_SRC)) $(KERNEL_OBJ)
# The runner's kernels are compiled without vectors as well: they have no other reference.
RUNNER_KERNEL_SRC := $(wildcard contrib/runner/kernels/*.c)
RUNNER_KERNEL_OBJ := $(foreach set,scalar $(KERNEL_SETS),$(RUNNER_KERNEL_SRC:%.c=$(BUILD)/obj/%-$(set).o))
# The kernels of statistics likewise.
STATISTICS_KERNEL_SRC := $(wildcard fs/kernels/*.c)
STATISTICS_KERNEL_OBJ := $(foreach set,scalar $(KERNEL_SETS),$(STATISTICS_KERNEL_SRC:%.c=$(BUILD)/obj/%-$(set).o))
SUPPORT_OBJ := $(call obj,$(SUPPORT_SRC))
LIB_OBJ  := $(DEQUANT_OBJ) $(STATISTICS_KERNEL_OBJ) $(SUPPORT_OBJ) $(call obj,$(GGUF_SRC) $(filter-out fs/command/main.c,$(FS_SRC)))
# libggufs: fs/library, and of the folders below what it calls.
LIBRARY_OBJ  := $(call obj,$(wildcard fs/library/*.c))
LIBRARY_CORE := $(filter-out $(LIBRARY_OBJ) $(BUILD)/obj/fs/mount/% $(BUILD)/obj/fs/command/%,$(LIB_OBJ))
LIBRARY_LIBS := $(call static,-lcjson -lnettle -lunistring) -lm
# Its number changes when programs must be compiled again.
LIBRARY_NAME := libggufs.so.0
# The runner reads the tree only. It needs no FUSE, and of gguf/ only models, support and jinja.
RUNNER_OBJ := $(DEQUANT_OBJ) $(SUPPORT_OBJ) $(call obj,$(RUNNER_SRC)) $(RUNNER_KERNEL_OBJ)
UNIT_OBJ := $(call obj,$(UNIT_SRC) $(HOSTILE_SRC) $(WRITER_SRC))

.PHONY: all check check-fast test test-clients demo soak bench bench-run lint lint-comments install uninstall clean deps help
.DELETE_ON_ERROR:
.SECONDARY:

all: $(BUILD)/ggufs $(BUILD)/ggufs-run $(BUILD)/libggufs.so $(BUILD)/libggufs.a

$(BUILD)/library-core.a: $(LIBRARY_CORE)
	@rm -f $@
	$(AR) rcs $@ $^

$(BUILD)/libggufs.so: $(LIBRARY_OBJ) $(BUILD)/library-core.a fs/library/exports.map
	$(CC) -shared -Wl,-soname,$(LIBRARY_NAME) -Wl,--version-script=fs/library/exports.map \
	    $(filter-out -pie,$(ALL_LDFLAGS)) -o $@ $(filter %.o %.a,$^) $(LIBRARY_LIBS)
	@ln -sf $(@F) $(BUILD)/$(LIBRARY_NAME)

# The interface that mount/test_library compares with: make abi, when a change of it is meant.
.PHONY: abi
abi: $(BUILD)/libggufs.so
	install -D -m 644 fs/library/ggufs.h $(BUILD)/include/ggufs.h
	abidw --no-show-locs --no-corpus-path --no-comp-dir-path --headers-dir $(BUILD)/include --drop-private-types --drop-undefined-syms \
	    --exported-interfaces-only --no-parameter-names --no-elf-needed --out-file contrib/packaging/libggufs.abi $<

# One object, so that only ggufs_* can clash with names of a program.
$(BUILD)/libggufs.a: $(LIBRARY_OBJ) $(BUILD)/library-core.a
	@rm -f $@
	$(LD) -r -o $(BUILD)/libggufs.o $^
	$(OBJCOPY) --wildcard --keep-global-symbol='ggufs_*' $(BUILD)/libggufs.o
	$(AR) rcs $@ $(BUILD)/libggufs.o

$(BUILD)/ggufs: $(LIB_OBJ) $(BUILD)/obj/fs/command/main.o
	$(CC) $(ALL_LDFLAGS) -o $@ $^ $(PKG_LIBS) -lm

$(BUILD)/ggufs-run: $(RUNNER_OBJ) $(call obj,$(RUNNER_MAIN))
	$(CC) $(ALL_LDFLAGS) -o $@ $^ $(RUNNER_LIBS) -lm

$(BUILD)/unit-tests: $(LIB_OBJ) $(call obj,$(RUNNER_SRC)) $(RUNNER_KERNEL_OBJ) $(UNIT_OBJ)
	$(CC) $(ALL_LDFLAGS) $(TEST_LINKER) -o $@ $^ $(PKG_LIBS) $(RUNNER_LIBS) -lcriterion -lm

$(BUILD)/make-bench $(BUILD)/make-big: $(BUILD)/make-%: $(call obj,tests/bench/make_%.c $(SAMPLE_SRC)) $(DEQUANT_OBJ)
	$(CC) $(ALL_LDFLAGS) -o $@ $^ -lm

$(BUILD)/make-run-model: $(call obj,tests/bench/make_run_model.c tests/bench/run_shapes.c $(SAMPLE_SRC)) $(DEQUANT_OBJ)
	$(CC) $(ALL_LDFLAGS) -o $@ $^ -lm

# Writes the hostile files for the mount tests.
$(BUILD)/make-hostile: $(call obj,tests/hostile/make_hostile.c $(HOSTILE_SRC) $(ZIP_SRC) $(WRITER_SRC))
	$(CC) $(ALL_LDFLAGS) -o $@ $^

# For the mount tests: uses all that libggufs offers.
$(BUILD)/walk-library: $(BUILD)/obj/tests/hostile/walk_library.o $(BUILD)/libggufs.so
	$(CC) $(ALL_LDFLAGS) -Wl,-rpath,'$$ORIGIN' -o $@ $^

# A library for LD_PRELOAD that makes allocations fail.
build/fail-malloc.so: tests/hostile/fail_malloc.c Makefile
	@mkdir -p $(@D)
	$(CC) -std=c11 -D_GNU_SOURCE $(WARNINGS) $(CFLAGS) -fPIC -shared -o $@ $<

# For the mount tests: a file system that fails reads on command, and one that names other files.
$(BUILD)/faulty $(BUILD)/liar: $(BUILD)/%: $(BUILD)/obj/tests/mount/%.o
	$(CC) $(ALL_LDFLAGS) -o $@ $^ $(PKG_LIBS)

# For the mount tests: renders chat templates.
$(BUILD)/render-templates: $(call obj,tests/mount/render_templates.c $(addprefix gguf/support/,json_values.c strings.c safe_print.c) $(JINJA_SRC))
	$(CC) $(ALL_LDFLAGS) -o $@ $^ -lunistring -lm

build/sample.gguf: contrib/make_sample.py
	@mkdir -p $(@D)
	$(firstword $(wildcard /usr/bin/python3) python3) $< $@

# Built without sanitizers, so that all builds share the files.
build/%.gguf: build/make-%
	build/make-$* $@

# Compares the kernels with the reference; runs in an emulator for another architecture.
$(BUILD)/check-kernels: $(call obj,$(wildcard tests/kernels/*.c tests/kernels/reference/*.c) tests/unit/dequant/random_blocks.c \
    contrib/runner/compute/run_kernels.c fs/tree/data/statistics_kernels.c) $(DEQUANT_OBJ) $(RUNNER_KERNEL_OBJ) $(STATISTICS_KERNEL_OBJ)
	$(CC) $(ALL_LDFLAGS) -o $@ $^ -lm

# Checks the runner's threads; with SAN=thread as well.
$(BUILD)/check-thread-pool: $(call obj,tests/threads/check_thread_pool.c tests/unit/runner/thread_pool_checks.c contrib/runner/compute/thread_pool.c)
	$(CC) $(ALL_LDFLAGS) -o $@ $^

define compile
@mkdir -p $(@D)
$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<
endef

$(BUILD)/obj/%.o: %.c Makefile
	$(compile)

# $(1): the folder of the objects, $(2): the set
define kernel_rule
$(1)/obj/%-$(2).o: ALL_CFLAGS += $(if $(SAN),-O1,-O3) -DDEQUANT_SET=$(2) $(CPU_$(2))
$(1)/obj/dequant/kernels/kernels_unpack_%-$(2).o $(1)/obj/dequant/kernels/kernels_multiply-$(2).o: ALL_CFLAGS += $(PRODUCTS_$(2))
$(1)/obj/%-$(2).o: %.c Makefile
	$$(compile)
endef
$(foreach set,scalar $(KERNEL_SETS),$(eval $(call kernel_rule,$(BUILD),$(set))))

-include $(patsubst %.o,%.d,$(LIB_OBJ) $(RUNNER_OBJ) $(UNIT_OBJ) $(call obj,fs/command/main.c $(RUNNER_MAIN) tests/hostile/make_hostile.c tests/hostile/walk_library.c \
    $(wildcard tests/bench/*.c tests/kernels/*.c tests/kernels/reference/*.c tests/mount/*.c tests/soak/*.c tests/threads/*.c tests/writer/*.c)))

# ---- fuzzing: replay with any compiler, libFuzzer with clang, or AFL++ ----

FUZZ_TARGETS := tree library decode json names runner templates stores
FUZZ_SECONDS ?= 60
FUZZER       := fuzz
FUZZ_CC      := $(if $(filter afl,$(FUZZER)),afl-clang-fast,clang)
FUZZ_MAX_LEN := 4096
# The target `library` has the inputs of `tree`.
fuzz_inputs  = $$(echo $$target | sed s/library/tree/)
FUZZ_SHARED  := tests/fuzz/fuzz_check.c tests/fuzz/fuzz_expected.c tests/fuzz/fuzz_files.c tests/unit/runner/metadata_files.c
# The runner without its command line.
FUZZED_SRC   := $(filter-out contrib/runner/cli/%,$(RUNNER_SRC))
# The target `tree` replaces these functions.
FUZZ_WRAP     = $(if $(filter tree%,$(@F)),-Wl$(comma)--wrap=mmap$(comma)--wrap=munmap)

$(FUZZ_TARGETS:%=$(BUILD)/fuzz/%-replay): $(BUILD)/fuzz/%-replay: $(LIB_OBJ) $(call obj,$(FUZZED_SRC)) $(RUNNER_KERNEL_OBJ) \
    $(call obj,tests/fuzz/fuzz_%.c $(FUZZ_SHARED) tests/fuzz/replay.c)
	@mkdir -p $(@D)
	$(CC) $(ALL_LDFLAGS) $(TEST_LINKER) $(FUZZ_WRAP) -o $@ $^ $(PKG_LIBS) $(RUNNER_LIBS) -lm

$(BUILD)/fuzz/make-seeds: $(call obj,tests/fuzz/make_seeds.c tests/fuzz/layout_seeds.c tests/fuzz/runner_seeds.c tests/fuzz/runner_more_seeds.c \
    tests/unit/gguf/old_file.c $(ZIP_SRC) gguf/legacy/families.c \
    $(WRITER_SRC)) $(DEQUANT_OBJ) $(SUPPORT_OBJ)
	@mkdir -p $(@D)
	$(CC) $(ALL_LDFLAGS) -o $@ $^ -lcjson -lunistring -lseccomp -lm

build/fuzz/seeds: build/fuzz/make-seeds
	build/fuzz/make-seeds $@
	@touch $@

fuzz_obj = $(patsubst %.c,build/$(FUZZER)/obj/%.o,$(1))
FUZZ_OBJ := $(patsubst $(BUILD)/obj/%,build/$(FUZZER)/obj/%,$(LIB_OBJ) $(call obj,$(FUZZED_SRC)) $(RUNNER_KERNEL_OBJ))

build/$(FUZZER)/obj/%.o: CC = $(FUZZ_CC)
build/$(FUZZER)/obj/%.o: HARDEN =
build/$(FUZZER)/obj/%.o: SANFLAGS = -fsanitize=$(if $(filter fuzz,$(FUZZER)),fuzzer-no-link$(comma))address,undefined \
    -fno-sanitize-recover=all -fno-omit-frame-pointer
# The targets themselves are built without coverage, so that libFuzzer ignores their branches.
build/$(FUZZER)/obj/tests/%.o: SANFLAGS += $(if $(filter fuzz,$(FUZZER)),-fno-sanitize=fuzzer-no-link)
build/$(FUZZER)/obj/dequant/%.o build/$(FUZZER)/obj/fs/kernels/%.o build/$(FUZZER)/obj/contrib/runner/%.o: ALL_CFLAGS += -ffp-contract=off
build/$(FUZZER)/obj/fs/kernels/%.o build/$(FUZZER)/obj/contrib/runner/%.o: ALL_CFLAGS += -fopenmp-simd
build/$(FUZZER)/obj/%.o: %.c Makefile
	$(compile)
$(foreach set,scalar $(KERNEL_SETS),$(eval $(call kernel_rule,build/$(FUZZER),$(set))))

$(FUZZ_TARGETS:%=build/$(FUZZER)/%): build/$(FUZZER)/%: $(FUZZ_OBJ) \
    $(call fuzz_obj,tests/fuzz/fuzz_%.c $(FUZZ_SHARED))
	$(FUZZ_CC) -pthread -pie -fsanitize=fuzzer,address,undefined $(FUZZ_WRAP) -o $@ $^ $(PKG_LIBS) $(RUNNER_LIBS) -lm

-include $(patsubst %.o,%.d,$(FUZZ_OBJ) $(call fuzz_obj,$(wildcard tests/fuzz/*.c)) \
    $(call obj,$(wildcard tests/fuzz/*.c)))

.PHONY: fuzz afl
fuzz:
	contrib/install-deps build fuzz
	$(MAKE) -s build/fuzz/seeds $(FUZZ_TARGETS:%=build/fuzz/%)
	set -e; for target in $(FUZZ_TARGETS); do \
	    mkdir -p build/fuzz/corpus/$$target; \
	    ASAN_OPTIONS=quarantine_size_mb=8 build/fuzz/$$target -max_total_time=$(FUZZ_SECONDS) -max_len=$(FUZZ_MAX_LEN) -timeout=10 \
	        -dict=tests/fuzz/gguf.dict -artifact_prefix=build/fuzz/$$target- -print_final_stats=1 \
	        build/fuzz/corpus/$$target build/fuzz/seeds/$(fuzz_inputs) tests/fuzz/corpus/$(fuzz_inputs); \
	done

# AFL++ writes its findings to build/afl/out-TARGET.
afl:
	contrib/install-deps build fuzz afl
	$(MAKE) -s build/fuzz/seeds
	$(MAKE) -s FUZZER=afl $(FUZZ_TARGETS:%=build/afl/%)
	set -e; for target in $(FUZZ_TARGETS); do \
	    mkdir -p build/afl/in-$$target; \
	    find build/fuzz/seeds/$(fuzz_inputs) tests/fuzz/corpus/$(fuzz_inputs) -type f -exec cp -t build/afl/in-$$target {} +; \
	    AFL_NO_UI=1 AFL_SKIP_CPUFREQ=1 AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1 AFL_NO_AFFINITY=1 AFL_AUTORESUME=1 \
	        afl-fuzz -m none -t 2000+ -V $(FUZZ_SECONDS) \
	            -x tests/fuzz/$$(test $$target = runner && echo runner || echo gguf).dict \
	        -i build/afl/in-$$target -o build/afl/out-$$target build/afl/$$target; \
	done

help:
	@echo 'make            build build/ggufs, build/ggufs-run and build/libggufs.so'
	@echo 'make deps       install the Debian packages that the build needs'
	@echo 'make demo       install, build, mount a model and show its tree (MODEL=, MNT=)'
	@echo 'make test       install what is missing, build and run the tests'
	@echo 'make check      build and run the tests; install nothing (TESTS=SUITE/NAME)'
	@echo 'make check-fast the tests that take a minute'
	@echo 'make test-clients  read a mount with NumPy, PyTorch, transformers … (installs them in build/)'
	@echo 'make fuzz       fuzz each target for FUZZ_SECONDS=60'
	@echo 'make afl        the same with AFL++'
	@echo 'make soak       64 readers at once for SOAK_SECONDS=600 (SOAK_MODEL=, SAN=thread)'
	@echo 'make bench      measure start-up and reading (BENCH_TYPES=, BENCH_MIB=)'
	@echo 'make bench-run  measure ggufs-run (BENCH_RUN_TYPES=, LLAMA_BENCH=, IK_BENCH=)'
	@echo 'make lint       clang-format, clang-tidy, cppcheck, mandoc, shellcheck'
	@echo 'make install    install to PREFIX=/usr/local below DESTDIR='
	@echo 'make dist       build the tarball of programs without dependencies in build/dist (DIST_MACHINE=aarch64)'
	@echo 'make wheel      the same, and the wheel of the Python package'
	@echo 'make uninstall  remove what make install installed'
	@echo 'make clean      remove build/'
	@echo 'make deb        build the Debian packages in build/deb'
	@echo 'make test-packages  build, check, install, try and remove them'
	@echo 'make test-dist  build the tarball and the wheel, and try them in bare Debian 12 and 13'
	@echo 'make release    make the signed tarball of VERSION in build/release (SIGN=no: unsigned)'

deps:
	contrib/install-deps build run

MODEL ?=
MNT   ?=
demo: export MODEL := $(MODEL)
demo: export MNT := $(MNT)
demo:
	contrib/demo "$$MODEL" "$$MNT"

test:
	contrib/test

# Single suites or tests: make check TESTS='unit/fs_json mount/test_read'
TESTS ?=
check:
	tests/run $(TESTS)

check-fast:
	tests/run --mark=smoke unit kernels mount

# Programs of others that read a mount; see tests/clients/run.
test-clients:
	contrib/install-deps build run demo clients
	$(MAKE) -s all build/sample.gguf
	tests/clients/run

# Many readers of a mounted tree, for load tests.
$(BUILD)/readers: $(call obj,tests/soak/readers.c)
	$(CC) $(ALL_LDFLAGS) -o $@ $^

SOAK_SECONDS ?= 600
SOAK_MODEL   ?= build/sample.gguf
# Sanitizers need extra memory and calls that the sandbox forbids.
soak:
	$(MAKE) -s $(BUILD)/ggufs
	$(MAKE) -s SAN= build/sample.gguf build/readers
	env $(if $(SAN),ANONYMOUS_MIB=0) tests/soak/run $(BUILD)/ggufs "$(SOAK_MODEL)" build/readers $(SOAK_SECONDS) \
	    $(if $(SAN),-o nosandbox)

# Options that shorten it, such as BENCH_TYPES=Q4_K,F16: see tests/bench/bench.py
BENCH_MIB     ?= 64
bench: export BENCH_MIB := $(BENCH_MIB)
bench:
	contrib/install-deps build run bench
	$(MAKE) -s build/ggufs build/libggufs.so build/null-fs build/bench-reader build/big.gguf \
	    build/bench-$(BENCH_MIB).gguf build/bench-kernels
	build/bench-kernels $(subst $(comma), ,$(BENCH_TYPES))
	tests/bench/bench.py

# Options that shorten it and programs to compare with: see tests/bench/run_speed.py
bench-run:
	contrib/install-deps build run bench
	$(MAKE) -s build/ggufs build/ggufs-run build/make-run-model build/bench-drafts build/bench-bandwidth
	tests/bench/run_speed.py

$(BUILD)/bench-kernels: $(call obj,tests/bench/bench_kernels.c tests/unit/dequant/random_blocks.c) $(DEQUANT_OBJ)
	$(CC) $(ALL_LDFLAGS) -o $@ $^ -lm

$(BUILD)/bench-drafts: $(RUNNER_OBJ) $(call obj,tests/bench/bench_drafts.c)
	$(CC) $(ALL_LDFLAGS) -o $@ $^ $(RUNNER_LIBS) -lm

# ggufs with a read that returns constant memory.
$(BUILD)/null-fs: $(LIB_OBJ) $(call obj,fs/command/main.c tests/bench/null_fs.c)
	$(CC) $(ALL_LDFLAGS) -Wl,--wrap=fs_requests -o $@ $^ $(PKG_LIBS) -lm

$(BUILD)/bench-reader $(BUILD)/bench-bandwidth: $(BUILD)/bench-%: $(BUILD)/obj/tests/bench/%.o
	$(CC) $(ALL_LDFLAGS) -o $@ $^

# Order-only dependency: the file is large, so changes to the decoders do not rewrite it.
build/bench-$(BENCH_MIB).gguf: tests/bench/make_bench.c | build/make-bench
	build/make-bench $@ $(BENCH_MIB)

C_FILES := $(wildcard $(addsuffix /*.[ch],dequant dequant/* gguf gguf/* fs/* fs/*/* contrib/runner/* tests/* tests/unit/* tests/unit/*/*))
# Phrases in comments that a reader must read twice.
UNCLEAR = those of|that of|of which|\bsuch\b|is no |is none

lint-comments:
	@if grep -nE '^ *\*.*($(UNCLEAR))|/\*.*($(UNCLEAR))|^[ /*]*(Of|What|Whether) ' $(C_FILES); then \
	    echo 'lint: in these comments, repeat the noun ("the size of B"), write "is not a", and put the subject first' >&2; exit 1; fi

# uninitvar: cppcheck assumes that loops over FLOAT_PARTS vectors, which is never 0, may end at once.
lint: lint-comments
	contrib/install-deps lint
	clang-format --dry-run -Werror $(C_FILES)
	set -e; $(foreach set,$(KERNEL_SETS),clang-tidy --quiet --warnings-as-errors='*' $(KERNEL_SRC) $(STATISTICS_KERNEL_SRC) $(RUNNER_KERNEL_SRC) -- \
	    -std=c11 -D_GNU_SOURCE -I. -DDEQUANT_SET=$(set) $(CPU_$(set)) $(PRODUCTS_$(set));)
	printf '%s\n' $(filter %.c,$(filter-out tests/% dequant/kernels/% fs/kernels/% contrib/runner/kernels/%,$(C_FILES))) | xargs -P $$(nproc) -I FILE \
	    clang-tidy --quiet --warnings-as-errors='*' FILE -- \
	    -std=c11 -D_GNU_SOURCE '-DGGUFS_VERSION=""' -I. $(PKG_CFLAGS)
	cppcheck --quiet --error-exitcode=1 --std=c11 --enable=warning,performance,portability \
	    --suppress='uninitvar:dequant/kernels/*.h' --inline-suppr -I. -D__BYTE_ORDER__=1234 -D__ORDER_LITTLE_ENDIAN__=1234 \
	    dequant gguf fs contrib/runner
	mandoc -T lint -W warning ggufs.1 ggufs.3 ggufs.5 ggufs-admin.7 ggufs-run.1
	shellcheck -s bash contrib/completion/*.bash
	shellcheck contrib/install-deps contrib/build contrib/demo contrib/test tests/clients/run tests/soak/run tests/packages/run .ci/run \
	    contrib/examples/cookbook.sh contrib/packaging/build-deb contrib/packaging/build-dist contrib/packaging/static-libs \
	    contrib/packaging/release tests/packages/dist

install: all
	set -e; for name in ggufs ggufs-run; do \
	    install -D -m 755 $(BUILD)/$$name "$(DESTDIR)$(BINDIR)/$$name"; \
	    install -D -m 644 $$name.1 "$(DESTDIR)$(MANDIR)/man1/$$name.1"; \
	    install -D -m 644 contrib/completion/ggufs.bash "$(DESTDIR)$(BASHDIR)/$$name"; \
	    install -D -m 644 contrib/completion/_ggufs "$(DESTDIR)$(ZSHDIR)/_$$name"; \
	done
	install -D -m 755 $(BUILD)/libggufs.so "$(DESTDIR)$(LIBDIR)/libggufs.so.$(VERSION)"
	ln -sf libggufs.so.$(VERSION) "$(DESTDIR)$(LIBDIR)/$(LIBRARY_NAME)"
	ln -sf $(LIBRARY_NAME) "$(DESTDIR)$(LIBDIR)/libggufs.so"
	install -m 644 $(BUILD)/libggufs.a "$(DESTDIR)$(LIBDIR)"
	install -D -m 644 fs/library/ggufs.h "$(DESTDIR)$(INCLUDEDIR)/ggufs.h"
	install -d "$(DESTDIR)$(LIBDIR)/pkgconfig"
	sed 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@INCLUDEDIR@|$(INCLUDEDIR)|; s|@VERSION@|$(VERSION)|; s|@LIBS@|$(LIBRARY_LIBS)|' \
	    fs/library/ggufs.pc.in >"$(DESTDIR)$(LIBDIR)/pkgconfig/ggufs.pc"
	chmod 644 "$(DESTDIR)$(LIBDIR)/pkgconfig/ggufs.pc"
	install -D -m 644 ggufs.3 "$(DESTDIR)$(MANDIR)/man3/ggufs.3"
	install -D -m 644 ggufs.5 "$(DESTDIR)$(MANDIR)/man5/ggufs.5"
	install -D -m 644 ggufs-admin.7 "$(DESTDIR)$(MANDIR)/man7/ggufs-admin.7"
	install -d "$(DESTDIR)$(UNITDIR)" "$(DESTDIR)$(DOCDIR)/systemd"
	sed 's|=/usr/bin/ggufs|=$(BINDIR)/ggufs|' 'contrib/systemd/ggufs@.service' >"$(DESTDIR)$(UNITDIR)/ggufs@.service"
	chmod 644 "$(DESTDIR)$(UNITDIR)/ggufs@.service"
	install -m 644 contrib/systemd/examples/* "$(DESTDIR)$(DOCDIR)/systemd"

uninstall:
	set -e; for name in ggufs ggufs-run; do \
	    rm -f "$(DESTDIR)$(BINDIR)/$$name" "$(DESTDIR)$(MANDIR)/man1/$$name.1" \
	        "$(DESTDIR)$(BASHDIR)/$$name" "$(DESTDIR)$(ZSHDIR)/_$$name"; \
	done
	rm -f "$(DESTDIR)$(MANDIR)/man5/ggufs.5" "$(DESTDIR)$(MANDIR)/man7/ggufs-admin.7"
	rm -f "$(DESTDIR)$(LIBDIR)/libggufs.so" "$(DESTDIR)$(LIBDIR)/$(LIBRARY_NAME)" "$(DESTDIR)$(LIBDIR)/libggufs.so.$(VERSION)" \
	    "$(DESTDIR)$(LIBDIR)/libggufs.a" "$(DESTDIR)$(LIBDIR)/pkgconfig/ggufs.pc" "$(DESTDIR)$(INCLUDEDIR)/ggufs.h" "$(DESTDIR)$(MANDIR)/man3/ggufs.3"
	rm -f "$(DESTDIR)$(UNITDIR)/ggufs@.service"
	rm -rf "$(DESTDIR)$(DOCDIR)/systemd"
	[ ! -d "$(DESTDIR)$(DOCDIR)" ] || rmdir --ignore-fail-on-non-empty "$(DESTDIR)$(DOCDIR)"

clean:
	rm -rf build

# ---- packages ----

# DIST_MACHINE=aarch64 builds for 64-bit Arm, with a cross compiler.
DIST_MACHINE ?= $(shell uname -m)
.PHONY: deb test-packages test-dist release dist wheel
dist:
	contrib/install-deps build deb $(if $(filter aarch64,$(DIST_MACHINE)),arm)
	contrib/packaging/build-dist $(VERSION) $(DIST_MACHINE)

wheel: dist
	contrib/python/make_wheel.py $(VERSION) build/dist/$(DIST_MACHINE)/ggufs-$(VERSION)-linux-$(DIST_MACHINE) build/dist

deb:
	contrib/install-deps build deb
	contrib/packaging/build-deb $(VERSION)

test-packages:
	contrib/install-deps build run demo deb lintian
	$(MAKE) -s build/sample.gguf
	tests/packages/run $(VERSION)

test-dist:
	contrib/install-deps build demo deb dist arm
	tests/packages/dist $(VERSION)

# SIGN=no leaves the signatures out; see contrib/packaging/release.
release:
	contrib/packaging/release $(VERSION)
