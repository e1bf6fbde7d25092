//! Users, groups, capabilities, scheduling and other settings of processes are those of Linux.

use crate::common;

use common::{HOSTED, Run, same_as_qemu};

#[test]
fn processes_change_users_groups_scheduling_and_settings_as_under_linux() {
    same_as_qemu("identity.c", HOSTED, &Run::default());
}
