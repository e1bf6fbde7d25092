//! Registers that the cores of a CMG share: the one behind the window to the ways of L2's sectors, and the blades of the hardware
//! barrier.
//!
//! Each running thread has a copy of the former in its registers. When a thread stops running on a CMG, its copy is stored for
//! the CMG's other threads, so that the last write counts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ipc::barrier::Barriers;
use crate::system::System;
use crate::thread::Thread;

/// Registers that cores share.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct SharedRegisters {
    /// Ways of L2's sectors as threads last left them, by memory node, for nodes that threads have run on.
    sector_ways: BTreeMap<Option<u32>, u64>,
    pub(crate) barriers: Barriers,
}

impl System {
    /// Stores the shared registers of `thread`, which stops running on its core.
    pub(crate) fn leave_core(&mut self, thread: &Thread) {
        let node = self.platform.node_of(thread.cpu_number());
        self.shared_registers.sector_ways.insert(node, thread.cpu.hpc.shared_by_cmg());
    }

    /// Loads the shared registers of the core on which `thread` starts to run; if none are stored, the initial values.
    pub(crate) fn enter_core(&self, thread: &mut Thread) {
        let node = self.platform.node_of(thread.cpu_number());
        let left = self.shared_registers.sector_ways.get(&node).copied();
        thread.cpu.hpc.set_shared_by_cmg(left.unwrap_or_else(|| self.platform.hpc.shared_by_cmg()));
    }
}
