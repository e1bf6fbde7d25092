//! The run's own network: without access to the host's, programs communicate as they do on a Linux machine without any interface
//! but `lo`.

use crate::common;

use std::path::Path;

use common::{HOSTED, Outcome, Run, build, oracle, run_qemu, run_with, same_as_qemu};
use fxscope_linux::{Access, Denied, Refusal};

/// Runs a part of `sockets.c` in a folder of its own, without access to the network.
fn here(part: &str, env: &[&str]) -> (Outcome, Vec<Refusal>) {
    let folder = tempfile::tempdir().expect("temporary folder");
    let args = [part, folder.path().to_str().expect("UTF-8")];
    let run = Run { args: &args, env, ..Run::default() };
    run_with(&build("sockets.c", HOSTED), &run, &Access::standard())
}

/// Compares a part of `sockets.c` with Linux, on which QEMU makes the same calls.
fn same(part: &str) {
    let (here, refusals) = here(part, &[]);
    let qemu = oracle(&here, || {
        let folder = tempfile::tempdir().expect("temporary folder");
        let args = [part, folder.path().to_str().expect("UTF-8")];
        run_qemu(&build("sockets.c", HOSTED), &Run { args: &args, ..Run::default() })
    });
    assert_eq!(here, qemu);
    assert_eq!((here.status, refusals), (0, Vec::new()));
}

#[test]
fn streams_connect_transfer_and_fail_as_on_linux() {
    same("tcp");
}

#[test]
fn datagrams_arrive_with_their_senders_address_or_are_lost_as_on_linux() {
    same("udp");
}

#[test]
fn sockets_of_both_internet_protocols_share_ports_as_on_linux() {
    same("dual");
}

#[test]
fn local_sockets_are_found_by_files_and_abstract_names_as_on_linux() {
    same("local");
}

#[test]
fn a_server_with_epoll_serves_many_threads_and_another_process() {
    same("serve");
}

#[test]
fn options_have_the_values_that_were_set_and_time_limits_end_waits() {
    same("options");
}

#[test]
fn the_loopback_interface_is_the_same_in_netlink_and_ioctl_as_on_linux() {
    let (outcome, _) = here("interfaces", &[]);
    let expected = "getifaddrs: 0\n\
                    lo family 17 flags 10049 \n\
                    lo family 2 flags 10049 127.0.0.1\n\
                    lo family 10 flags 10049 ::1\n\
                    flags: 73\n\
                    mtu: 65536\n\
                    index: 1\n\
                    lo\n\
                    no such interface: ENODEV\n\
                    SIOCGIFCONF: 0\n\
                    lo 127.0.0.1\n\
                    another protocol of netlink: EPROTONOSUPPORT\n";
    assert_eq!((outcome.output.as_str(), outcome.status), (expected, 0), "{}", outcome.error);
}

#[test]
fn the_machine_knows_its_own_name_and_nothing_leaves_it() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let foreign = folder.path().join("foreign");
    let _listener = std::os::unix::net::UnixListener::bind(&foreign).expect("a socket of the host");
    let (outcome, refusals) = here("names", &[&format!("FOREIGN={}", foreign.display())]);
    let expected = "localhost: 127.0.0.1 with a port\n\
                    127.0.0.1\n\
                    fxscope: 127.0.1.1 with a port\n\
                    127.0.1.1\n\
                    connect outside: ENETUNREACH\n\
                    send outside: ENETUNREACH\n\
                    send outside: ENETUNREACH\n\
                    first port: 1\n\
                    /proc/net/tcp: 2\n\
                    /proc/net/udp: 1\n\
                    /proc/net/tcp6: 1\n\
                    /proc/net/unix: 1\n\
                    /proc/net/dev: 3\n\
                    /proc/net/route: 1\n\
                    /proc/net/if_inet6: 1\n\
                    /sys/class/net/lo/address: 1\n\
                    /sys/class/net/lo/mtu: 1\n\
                    /sys/class/net/lo/operstate: 1\n\
                    /proc/sys/net/core/somaxconn: 1\n\
                    a socket of the host: EACCES\n\
                    a name elsewhere: EACCES\n";
    assert_eq!((outcome.output.as_str(), outcome.status), (expected, 0), "{}", outcome.error);
    let network = refusals.iter().filter(|refusal| refusal.denied == Denied::Network);
    assert_eq!(network.map(|refusal| refusal.calls).sum::<u64>(), 4, "{refusals:?}");
}

#[test]
fn thousands_of_sockets_and_full_queues_meet_limits() {
    let (outcome, _) = here("flood", &[]);
    let expected = "round 0: EMFILE\n\
                    round 1: EMFILE\n\
                    some are lost: 1\n\
                    accept after shutdown: EINVAL\n\
                    reset: ECONNRESET\n\
                    odd name: 0\n";
    assert_eq!((outcome.output.as_str(), outcome.status), (expected, 0), "{}", outcome.error);
}

fn random_operations(program: &Path, seed: u32, more: &[&str]) -> Outcome {
    let folder = tempfile::tempdir().expect("temporary folder");
    let seed = seed.to_string();
    let args = [&[&*seed, folder.path().to_str().expect("UTF-8")], more].concat();
    run_with(program, &Run { args: &args, ..Run::default() }, &Access::standard()).0
}

#[test]
fn refused_connections_and_errors_of_udp_are_seen_by_poll_select_and_epoll_as_on_linux() {
    same_as_qemu("socket_errors.c", HOSTED, &Run::default());
}

/// Takes a minute of processor time.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn random_operations_on_sockets_and_queues_end_and_give_the_same_results_again() {
        let program = build("sockets_random.c", HOSTED);
        for seed in 0..6 {
            let [first, second] = [(), ()].map(|()| random_operations(&program, seed, &[]));
            assert_eq!((first.status, &first), (0, &second), "seed {seed}");
        }
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn random_operations_end_with_sockets_that_are_passed_over_one_another_too() {
        // The host closes sockets that only messages in one another refer to, at a time of its own.
        let program = build("sockets_random.c", HOSTED);
        for seed in 6..10 {
            assert_eq!(random_operations(&program, seed, &["passes sockets"]).status, 0, "seed {seed}");
        }
    }
}
