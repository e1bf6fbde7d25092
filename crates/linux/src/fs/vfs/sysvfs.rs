//! `/proc/sysvipc`: the System V semaphores and message queues (proc(5), ipcs(1)).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::tree::Entry;
use crate::ipc::sysv::messages::{MESSAGE_MAX, QUEUE_BYTES, QUEUES};
use crate::ipc::sysv::objects::Permissions;
use crate::ipc::sysv::semaphores::{OPERATIONS, SET_MAX, SETS};
use crate::kernel::Kernel;

/// Adds the simulated files.
pub(super) fn entries(entries: &mut BTreeMap<Vec<u8>, Entry>) {
    let mut put = |path: &str, entry: Entry| entries.insert(path.as_bytes().to_vec(), entry);
    put("/proc/sysvipc/sem", Entry::Made(|k, _| semaphores(k)));
    put("/proc/sysvipc/msg", Entry::Made(|k, _| messages(k)));
    let limits = format!("{SET_MAX}\t1024000000\t{OPERATIONS}\t{SETS}\n");
    put("/proc/sys/kernel/sem", Entry::Text(limits.into_bytes()));
    for (name, value) in
        [("queues_max", 256), ("msg_max", 10), ("msgsize_max", 8192), ("msg_default", 10), ("msgsize_default", 8192)]
    {
        put(&format!("/proc/sys/fs/mqueue/{name}"), Entry::Text(format!("{value}\n").into_bytes()));
    }
    for (name, value) in [("msgmax", MESSAGE_MAX), ("msgmnb", QUEUE_BYTES), ("msgmni", QUEUES as u64)] {
        put(&format!("/proc/sys/kernel/{name}"), Entry::Text(format!("{value}\n").into_bytes()));
    }
}

/// The columns that all objects have, and those between the rights and the owner.
fn line(id: u32, permissions: &Permissions, middle: &str) -> String {
    let &Permissions { key, uid, gid, cuid, cgid, mode, .. } = permissions;
    format!("{:>10} {id:>10}  {mode:>4o} {middle} {uid:>5} {gid:>5} {cuid:>5} {cgid:>5}", key as i32)
}

fn semaphores(k: &Kernel<'_>) -> Vec<u8> {
    let mut text =
        String::from("       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime\n");
    for (id, permissions, set) in k.system.sysv.sets.permissions() {
        let middle = format!("{:>10}", set.semaphores.len());
        let _ = writeln!(text, "{} {:>10} {:>10}", line(id, permissions, &middle), set.operated, set.changed);
    }
    text.into_bytes()
}

fn messages(k: &Kernel<'_>) -> Vec<u8> {
    let mut text = String::from(
        "       key      msqid perms      cbytes       qnum lspid lrpid   uid   gid  cuid  cgid      stime      rtime      \
         ctime\n",
    );
    for (id, permissions, queue) in k.system.sysv.queues.permissions() {
        let [sent, received, changed] = queue.times;
        let [sender, receiver] = queue.pids;
        let middle = format!("{:>10} {:>10} {sender:>5} {receiver:>5}", queue.text_bytes, queue.messages.len());
        let _ = writeln!(text, "{} {sent:>10} {received:>10} {changed:>10}", line(id, permissions, &middle));
    }
    text.into_bytes()
}
