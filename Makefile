# ggufs: one Makefile for everything; `make help` lists the targets.
#
#   CC=clang            another compiler
#   SAN=address,undefined   a build with sanitizers, in a folder of its own
#   DESTDIR=, PREFIX=   where `make install` puts things

VERSION := 0.1.0

PREFIX  ?= /usr/local
BINDIR  ?= $(PREFIX)/bin
MANDIR  ?= $(PREFIX)/share/man

comma := ,
BUILD := build$(if $(SAN),/san-$(subst $(comma),-,$(SAN)))$(if $(filter clang%,$(CC)),/clang)

PKGS := fuse3 libcjson
PKG_CFLAGS = $(shell pkg-config --cflags $(PKGS))
PKG_LIBS   = $(shell pkg-config --libs $(PKGS)) -lunistring

CFLAGS   ?= -O2 -g
WARNINGS := -Wall -Wextra -Wshadow -Wconversion
HARDEN   := $(if $(SAN),,-D_FORTIFY_SOURCE=2 -fstack-protector-strong)
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE -DGGUFS_VERSION='"$(VERSION)"' -I. $(PKG_CFLAGS) $(WARNINGS) \
             $(HARDEN) $(SANFLAGS) -pthread -fPIE $(CFLAGS)
ALL_LDFLAGS = -pthread -pie -Wl,-z,relro,-z,now $(SANFLAGS) $(LDFLAGS)

# dequant/ must give the same bits everywhere: no contraction of a*b+c.
$(BUILD)/obj/dequant/%.o: ALL_CFLAGS += -ffp-contract=off

DEQUANT_SRC := $(wildcard dequant/*.c)
GGUF_SRC    := $(wildcard gguf/*.c)
FS_SRC      := $(wildcard fs/*.c)
WRITER_SRC  := contrib/sample/gguf_writer.c
UNIT_SRC    := $(wildcard tests/unit/*.c)

obj = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
LIB_OBJ  := $(call obj,$(DEQUANT_SRC) $(GGUF_SRC) $(filter-out fs/main.c,$(FS_SRC)))
UNIT_OBJ := $(call obj,$(UNIT_SRC) $(WRITER_SRC))

.PHONY: all test unit mount-test demo bench lint install uninstall clean deps dev-deps help
.DELETE_ON_ERROR:

all: $(BUILD)/ggufs

$(BUILD)/ggufs: $(LIB_OBJ) $(BUILD)/obj/fs/main.o
	$(CC) $(ALL_LDFLAGS) -o $@ $^ $(PKG_LIBS)

$(BUILD)/unit-tests: $(LIB_OBJ) $(UNIT_OBJ)
	$(CC) $(ALL_LDFLAGS) -o $@ $^ $(PKG_LIBS) -lcriterion -lm

$(BUILD)/make-%: $(call obj,contrib/sample/make_%.c) $(call obj,$(WRITER_SRC) $(DEQUANT_SRC))
	$(CC) $(ALL_LDFLAGS) -o $@ $^ -lm

build/sample.gguf: build/make-sample
	build/make-sample $@

$(BUILD)/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

-include $(patsubst %.o,%.d,$(LIB_OBJ) $(UNIT_OBJ) $(call obj,fs/main.c $(wildcard contrib/sample/*.c)))
