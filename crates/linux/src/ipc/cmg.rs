//! Registers that the cores of a CMG share: the one behind the window to the ways of L2's sectors, and the blades
//! of the hardware barrier.
//!
//! Of the first, each thread has a copy in its registers while it runs. The copy is left behind for the others of its CMG when the
//! thread stops running there, so that the last write counts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ipc::barrier::Barriers;
use crate::system::System;
use crate::thread::Thread;

/// Registers that cores share.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct SharedRegisters {
    /// Ways of L2's sectors as threads have left them, by memory node, of the nodes that threads have run on.
    sector_ways: BTreeMap<Option<u32>, u64>,
    pub(crate) barriers: Barriers,
}

impl System {
    /// `thread` stops running on its core.
    pub(crate) fn leave_core(&mut self, thread: &Thread) {
        let node = self.platform.node_of(thread.cpu_number());
        self.shared_registers.sector_ways.insert(node, thread.cpu.hpc.shared_by_cmg());
    }

    /// `thread` starts running on its core, whose shared registers are as they were left or else as at the beginning.
    pub(crate) fn enter_core(&self, thread: &mut Thread) {
        let node = self.platform.node_of(thread.cpu_number());
        let left = self.shared_registers.sector_ways.get(&node).copied();
        thread.cpu.hpc.set_shared_by_cmg(left.unwrap_or_else(|| self.platform.hpc.shared_by_cmg()));
    }
}
