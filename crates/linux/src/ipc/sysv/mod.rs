//! System V semaphores and message queues (sysvipc(7)): objects that processes find by keys, and that exist until they are removed.

pub(crate) mod messages;
pub(crate) mod objects;
pub(crate) mod semaphores;

use crate::kernel::Kernel;
use crate::sched::wait::IpcObject;
use serde::{Deserialize, Serialize};

use messages::Queue;
use objects::Objects;
use semaphores::{Set, Undo};

/// The semaphores and message queues of a run.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct SysV {
    /// Sets of semaphores.
    pub sets: Objects<Set>,
    /// What must be undone when a process ends.
    pub undo: Undo,
    /// Message queues.
    pub queues: Objects<Queue>,
}

impl SysV {
    /// Returns the bytes that the objects take on the host.
    pub(crate) fn bytes(&self) -> u64 {
        let sets: u64 = self.sets.iter().map(|(_, set)| set.bytes()).sum();
        let queues: u64 = self.queues.iter().map(|(_, queue)| queue.bytes()).sum();
        sets + queues + self.undo.bytes()
    }
}

impl Kernel<'_> {
    /// Lets the calls that wait for a change of an object try again, and charges for what the objects hold now.
    pub(crate) fn ipc_changed(&mut self, object: IpcObject) {
        for thread in self.all_threads_mut() {
            thread.poked |= thread.waits_for_object(object);
        }
        self.system.sysv_charge.set(self.system.sysv.bytes());
    }

    /// Undoes what the process that ends has done to semaphores with `SEM_UNDO`.
    pub(crate) fn undo_semaphores(&mut self) {
        for id in self.system.sysv.process_ends(self.process.pid) {
            self.ipc_changed(IpcObject::Semaphores(id));
        }
    }
}
