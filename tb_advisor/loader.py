"""TensorBoard's way in. It must import nothing that can fail: an error here would end TensorBoard itself."""

from __future__ import annotations

import argparse
import logging
import os

from tensorboard.plugins import base_plugin


class AdvisorLoader(base_plugin.TBLoader):
    """Loads the Advisor tab, or says in the log why it cannot."""

    def define_flags(self, parser: argparse.ArgumentParser) -> None:
        """The Advisor's flags of `tensorboard`."""
        group = parser.add_argument_group("advisor")
        group.add_argument(
            "--advisor_memory_mb",
            metavar="MB",
            type=int,
            help="How much memory the points that the Advisor keeps may take (default: a quarter of the machine's). Where a log directory "
            "has more, its jobs are checked one by one and only what charts need is kept of them.",
        )
        group.add_argument(
            "--advisor_config",
            metavar="FILE",
            help="Thresholds, roles of tags and known findings for the Advisor: a pyproject.toml with a table [tool.tb_advisor], or a "
            "tb_advisor.toml (default: none).",
        )

    def fix_flags(self, flags: argparse.Namespace) -> None:
        """Raises `FlagsError` where a value makes no sense. Programs that embed TensorBoard may leave flags out."""
        megabytes = getattr(flags, "advisor_memory_mb", None)
        if megabytes is not None and megabytes < 1:
            raise base_plugin.FlagsError(f"--advisor_memory_mb must be at least 1, not {megabytes}")
        config = getattr(flags, "advisor_config", None)
        if config is not None and not os.path.isfile(os.path.expanduser(config)):
            raise base_plugin.FlagsError(f"--advisor_config: there is no file {config}")

    def load(self, context: base_plugin.TBContext) -> base_plugin.TBPlugin | None:
        """The plugin; None, with a warning in TensorBoard's log, where something that it needs is broken or not
        installed.
        """
        try:
            from tb_advisor.plugin import AdvisorPlugin

            return AdvisorPlugin(context)
        except Exception as error:  # whatever is broken in the installation, TensorBoard must start
            logging.getLogger("tb_advisor").warning("The Advisor tab is off: %s: %s", type(error).__name__, error)
            return None
