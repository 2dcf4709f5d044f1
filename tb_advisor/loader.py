"""TensorBoard's way in. It must import nothing that can fail: an error here would end TensorBoard itself."""

from __future__ import annotations

import logging

from tensorboard.plugins import base_plugin


class AdvisorLoader(base_plugin.TBLoader):
    """Loads the Advisor tab, or says in the log why it cannot."""

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
