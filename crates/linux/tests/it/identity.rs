//! Users, groups, capabilities, scheduling and other settings of processes are those of Linux.

use crate::common;

use common::{HOSTED, Run, same_as_qemu};

#[test]
fn processes_change_users_groups_scheduling_and_settings_as_under_linux() {
    // QEMU's programs have the host's priority and may raise it as root, the simulator's begin with 0.
    let priority = rustix::process::getpriority_process(None).expect("the priority of this process");
    if priority != 0 {
        fxscope_testkit::skip(format_args!(
            "the tests run with priority {priority} (nice), the simulated program with 0"
        ));
        return;
    }
    same_as_qemu("identity.c", HOSTED, &Run::default());
}
