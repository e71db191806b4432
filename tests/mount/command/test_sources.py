#!/usr/bin/env python3
"""Each source file of the programs has a unit test, which includes its header, or a mount test named here."""

import glob
import os
import re
import unittest

import mounting

FOLDERS = ("fs/command", "fs/mount", "contrib/runner/cli")

# By source file: a module of mount tests, or MODULE/TEST.
COVERED_BY = {
    "contrib/runner/cli/bench_task.c": "test_runner_bench",
    "contrib/runner/cli/chat_task.c": "test_runner",
    "contrib/runner/cli/line_editor.c": "test_runner_ends",
    "contrib/runner/cli/sampling_defaults.c": "test_runner",
    "contrib/runner/cli/kind_message.c": "test_runner",
    "contrib/runner/cli/messages.c": "test_runner",
    "contrib/runner/cli/run_main.c": "test_runner",
    "contrib/runner/cli/logits_task.c": "test_runner/test_every_command_checks_its_output",
    "contrib/runner/cli/session.c": "test_runner",
    "contrib/runner/cli/task_files.c": "test_runner/test_every_command_checks_its_output",
    "contrib/runner/cli/text_task.c": "test_runner",
    "fs/command/arguments.c": "test_no_mount/test_order_of_arguments",
    "fs/command/cat.c": "test_no_mount/test_several_files",
    "fs/command/check.c": "test_check",
    "fs/command/check_data.c": "test_check/test_data",
    "fs/command/completion.c": "test_options/test_values",
    "fs/command/copy_file.c": "test_no_mount/test_interrupts",
    "fs/command/diff.c": "test_diff",
    "fs/command/edit_options.c": "test_surgery",
    "fs/command/extract.c": "test_no_mount/test_whole_trees",
    "fs/command/finding_output.c": "test_check/test_text_and_json",
    "fs/command/info.c": "test_json",
    "fs/command/list.c": "test_no_mount/test_all_models",
    "fs/command/main.c": "test_command",
    "fs/command/many_models.c": "test_many",
    "fs/command/model_input.c": "test_command",
    "fs/command/mount_model.c": "test_daemon",
    "fs/command/render.c": "test_render/test_text",
    "fs/command/stats.c": "test_diff/test_stats",
    "fs/command/status.c": "test_status",
    "fs/command/terminal.c": "test_no_mount/test_a_terminal_gets_safe_names",
    "fs/command/tree_selection.c": "test_no_mount/test_names_before_patterns",
    "fs/mount/activity.c": "test_status/test_asking_is_no_use_of_the_tree",
    "fs/mount/changes.c": "test_changes",
    "fs/mount/daemon.c": "test_daemon/test_killed_server_leaves_no_mount",
    "fs/mount/descriptors.c": "test_load/test_thousands_of_opens",
    "fs/mount/file_requests.c": "test_read",
    "fs/mount/log.c": "test_logs",
    "fs/mount/mount_table.c": "test_status/test_strange_names",
    "fs/mount/mountpoint.c": "test_mountpoint/test_dangling",
    "fs/mount/opener.c": "test_many/test_a_folder_that_becomes_a_link",
    "fs/mount/read_failures.c": "test_faults",
    "fs/mount/requirements.c": "test_containers/test_device_that_the_control_group_denies",
    "fs/mount/serve.c": "test_daemon",
    "fs/mount/set_requests.c": "test_many",
}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def mount_tests():
    """{module: text}"""
    return {os.path.basename(path)[:-3]: read(path)
            for path in glob.glob(os.path.join(mounting.ROOT, "tests/mount/*/test_*.py"))}


class TestSources(unittest.TestCase):
    def setUp(self):
        self.sources = {os.path.relpath(path, mounting.ROOT) for folder in FOLDERS
                        for path in glob.glob(os.path.join(mounting.ROOT, folder, "*.c"))}
        self.unit_tests = "".join(map(read, glob.glob(os.path.join(mounting.ROOT, "tests/unit/**/*.c"), recursive=True)))

    def test_every_source_has_a_test(self):
        untested = {path for path in self.sources if f'#include "{path[:-1]}h"' not in self.unit_tests}
        self.assertGreater(len(self.sources), 40)
        self.assertEqual([], sorted(untested - set(COVERED_BY)), "write a test, or a row of COVERED_BY")
        self.assertEqual([], sorted(set(COVERED_BY) - untested), "rows of COVERED_BY that nobody needs")

    def test_the_named_tests_exist(self):
        modules = mount_tests()
        for source, name in COVERED_BY.items():
            module, _, test = name.partition("/")
            self.assertTrue(module in modules, f"{source}: no module {module}")
            self.assertTrue(re.search(rf"^    def {test or 'test_'}", modules[module], re.MULTILINE), source)
