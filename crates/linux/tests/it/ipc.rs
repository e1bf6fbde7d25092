//! Communication between the processes of a run, as Linux does it: the expected output is that of the same program on Linux.

use crate::common;

use common::{HOSTED, Run, build, run_here};

fn check(part: &str, expected: &str) {
    let outcome = run_here(&build("ipc.c", HOSTED), &Run { args: &[part], ..Run::default() });
    assert_eq!((outcome.output.as_str(), outcome.status), (expected, 0), "{part}: {}", outcome.error);
}

#[test]
fn descriptors_of_every_kind_are_passed_between_processes() {
    check(
        "rights",
        "received: 8\n\
         close-on-exec: 1\n\
         flags: 0\n\
         epoll: 1\n\
         pipe: 4\n\
         end of the pipe: 0\n\
         file: 8\n\
         position: 8\n\
         event: 7\n\
         /proc: 1\n\
         in memory\n\
         datagram: 8\n\
         device: 3\n\
         from the child: 8\n\
         child: 0\n\
         name is free: 0\n",
    );
}

#[test]
fn passed_descriptors_are_limited_truncated_and_closed_with_their_messages() {
    check(
        "limits",
        "253: 1\n\
         254: EINVAL\n\
         all: 253\n\
         two of three: 2, truncated 1\n\
         no room: 0, truncated 1\n\
         no such descriptor: EBADF\n\
         read: 3\n\
         the message has the writer: 0\n\
         peek: 1\n\
         peeked writes: 1\n\
         now it is closed: 0\n\
         nothing is left: 0\n\
         6 4 5\n",
    );
}

#[test]
fn sockets_in_their_own_queues_neither_hang_nor_exhaust_anything() {
    check(
        "cycles",
        "done\n\
         limited: 1\n",
    );
}

#[test]
fn a_socket_that_asks_for_credentials_gets_the_processs_own_number() {
    check(
        "credentials",
        "message: 5\n\
         type 2, child 1, user 1\n\
         both: 2\n\
         both received: 2\n\
         kinds 21, 56 bytes\n",
    );
}

#[test]
fn several_messages_are_sent_and_received_in_one_call() {
    check(
        "messages",
        "sendmmsg: 4\n\
         1 2 3 4\n\
         recvmmsg: 3\n\
         1 2 3\n\
         waits for all: 2\n\
         nothing: EAGAIN\n\
         no messages: 0\n\
         bad descriptor: EBADF\n",
    );
}

#[test]
fn processes_read_and_write_each_others_memory() {
    check(
        "memory",
        "read: 15\n\
         child's second original\n\
         write: 8\n\
         partly: 4\n\
         not mapped: EFAULT\n\
         no process: ESRCH\n\
         flags: EINVAL\n\
         child: 0\n",
    );
}

#[test]
fn semaphores_exclude_wait_undo_and_are_removed() {
    check(
        "semaphores",
        "SETALL: 0\n\
         excluded: 100\n\
         undone: 1\n\
         neither: 1\n\
         last: 1\n\
         child: 0\n\
         both: 0\n\
         now: EAGAIN\n\
         too late: EAGAIN\n\
         no such semaphore: EFBIG\n\
         too large: ERANGE\n\
         IPC_STAT: 0\n\
         2 semaphores, mode 600\n\
         IPC_RMID: 0\n\
         removed: 3\n\
         gone: EINVAL\n\
         again: EEXIST\n\
         same: 1\n\
         larger: EINVAL\n\
         no key: ENOENT\n\
         no semaphores: EINVAL\n\
         too many: EINVAL\n",
    );
}

#[test]
fn message_queues_select_wait_fill_up_and_are_removed() {
    check(
        "queues",
        "send: 0\n\
         send: 0\n\
         of a type: 4\n\
         two\n\
         too long: E2BIG\n\
         cut: 2\n\
         none: ENOMSG\n\
         child: 0\n\
         IPC_STAT: 0\n\
         0 messages of 16384 bytes, last 1\n\
         full: 163\n\
         full: EAGAIN\n\
         no type: EINVAL\n\
         too long: EINVAL\n\
         IPC_RMID: 0\n\
         removed: 5\n\
         gone: EINVAL\n\
         no key: ENOENT\n",
    );
}

#[test]
fn posix_message_queues_order_wait_notify_and_can_be_polled() {
    check(
        "posix",
        "none: ENOENT\n\
         again: EEXIST\n\
         two slashes: EACCES\n\
         no room: EINVAL\n\
         send: 0\n\
         send: 0\n\
         send: 0\n\
         full: 1\n\
         too late: ETIMEDOUT\n\
         high: 4\n\
         priority: 9\n\
         low: 1\n\
         small buffer: EMSGSIZE\n\
         too long: EMSGSIZE\n\
         priority: EINVAL\n\
         last: 7\n\
         empty: 4\n\
         child: 0\n\
         mq_setattr: 0\n\
         3 16 0 1\n\
         nothing: EAGAIN\n\
         read only: EBADF\n\
         notify: 0\n\
         busy: EBUSY\n\
         signal: 77\n\
         notify a thread: 0\n\
         thread: 88\n\
         mq_unlink: 0\n\
         mq_unlink: ENOENT\n\
         still there: 1\n\
         close: 0\n\
         closed: EBADF\n\
         limited: 1\n",
    );
}
