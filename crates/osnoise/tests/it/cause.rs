//! Kernel events in the text of each tracer, and their attribution to detours.

use std::path::Path;

use fxscope_hostinfo::cpus::RealtimeLimit;
use fxscope_osnoise::cause::{
    self, Event, EventContext, Parser, Start, ThreadKind, name, osnoise_settings, plain_settings,
};
use fxscope_osnoise::trace::{Cause, Detour, Header, Item, Kind, Method, Reader, Summary, UNKNOWN, Writer};
use proptest::prelude::*;

fn who(name: &str, number: u32) -> ThreadKind {
    match (name, number) {
        (_, 0) => ThreadKind::Idle,
        ("fxnoise/1" | "spin", _) => ThreadKind::Measuring,
        (name, _) if name.starts_with("kworker") || name.starts_with("migration") || name == "rcu_preempt" => {
            ThreadKind::Kernel
        }
        _ => ThreadKind::Program,
    }
}

fn events(start: Start, text: &str) -> Vec<Event> {
    let mut parser = Parser::new(start, who);
    text.lines().filter_map(|line| parser.line(line)).collect()
}

fn event(core: u32, start: u64, length: u64, kind: Kind, name: &str) -> Event {
    Event { core, start, length, net: false, cause: Cause::new(kind, name) }
}

/// In the format of the kernel's Documentation/trace/osnoise-tracer.rst.
const OSNOISE: &str = "\
# tracer: osnoise
       osnoise/3-961     [003] d.h..   100.000010: irq_noise: local_timer:236 start 100.000007500 duration 2000 ns
       osnoise/3-961     [003] ..s..   100.000020: softirq_noise:  SCHED:7 start 100.000011000 duration 8500 ns
     kworker/3:1-54      [003] d....   100.000050: thread_noise: kworker/3:1:54 start 100.000021000 duration 28000 ns
       osnoise/3-961     [003] d....   100.000060: nmi_noise: start 100.000055000 duration 4000 ns
       osnoise/3-961     [003] .....   100.000061: sample_threshold: start 100.000007000 duration 53000 ns interferences 4
";

#[test]
fn osnoise_events_have_names_and_net_durations() {
    let found = events(Start::Field, OSNOISE);
    let at = |ns: u64| 100_000_000_000 + ns;
    let net = |event: Event| Event { net: true, ..event };
    assert_eq!(
        found,
        [
            event(3, at(7_500), 2_000, Kind::Interrupt, "local_timer:236"),
            event(3, at(11_000), 8_500, Kind::SoftInterrupt, "SCHED:7"),
            event(3, at(21_000), 28_000, Kind::KernelThread, "kworker/3:1"),
            event(3, at(55_000), 4_000, Kind::Nmi, ""),
            event(3, at(7_000), 53_000, Kind::Unknown, ""),
        ]
        .map(net)
    );
    // By the line's clock, an event starts its length before the line.
    assert_eq!(events(Start::Line, OSNOISE)[0].start, at(8_000));
}

/// In the formats of the events irq:*, irq_vectors:* and sched:sched_switch.
const PLAIN: &str = "\
 CPU:1 [LOST 12 EVENTS]
            spin-77      [001] d.h.   50.000100: irq_handler_entry: irq=36 name=virtio1-req.0
            spin-77      [001] d.h.   50.000108: irq_handler_exit: irq=36 ret=handled
            spin-77      [001] ..s.   50.000110: softirq_entry: vec=4 [action=BLOCK]
            spin-77      [001] d.h.   50.000112: local_timer_entry: vector=236
            spin-77      [001] d.h.   50.000115: local_timer_exit: vector=236
            spin-77      [001] ..s.   50.000120: softirq_exit: vec=4 [action=BLOCK]
            spin-77      [001] d...   50.000200: sched_switch: prev_comm=spin prev_pid=77 prev_prio=120 prev_state=R+ ==> next_comm=my [odd] d next_pid=99 next_prio=120
    my [odd] d-99      [001] d...   50.004200: sched_switch: prev_comm=my [odd] d prev_pid=99 prev_prio=120 prev_state=S ==> next_comm=spin next_pid=77 next_prio=120
";

#[test]
fn nested_interrupts_and_switches_are_paired() {
    let at = |us: u64| 50_000_000_000 + us * 1_000;
    let expected = [
        event(1, at(100), 8_000, Kind::Interrupt, "36 virtio1-req.0"),
        event(1, at(112), 3_000, Kind::Interrupt, "local_timer"),
        event(1, at(110), 10_000, Kind::SoftInterrupt, "BLOCK"),
        event(1, at(200), 4_000_000, Kind::Task, "my [odd] d"),
    ];
    assert_eq!(events(Start::Line, PLAIN), expected);
    let mut parser = Parser::new(Start::Line, who);
    PLAIN.lines().for_each(|line| drop(parser.line(line)));
    assert_eq!(parser.lost(), 12);
}

#[test]
fn perf_switches_show_which_thread_ran_and_how_long() {
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/jitter/perf-switches.txt"));
    let found = events(Start::Line, &text.expect("recorded"));
    // The third and fourth switch of core 1 in the file: from 17412.760024761 to 17412.760029899.
    let rcu = event(1, 17_412_760_024_761, 5_138, Kind::KernelThread, "rcu_preempt");
    assert!(found.contains(&rcu), "{found:?}");
    assert!(found.iter().all(|event| event.core < 2 && event.length < 1_000_000_000));
}

/// perf script's format. These events are written when a real-time thread has used up its share of the second and no other
/// thread wants the core, and later when that thread sleeps.
const THROTTLED: &str = "\
       fxnoise/1   700 [001]   10.950000000: PERF_RECORD_SWITCH_CPU_WIDE OUT preempt  next pid/tid:    15/15
     rcu_preempt    15 [001]   10.950001000: PERF_RECORD_SWITCH_CPU_WIDE IN           prev pid/tid:   699/700
     rcu_preempt    15 [001]   10.950006000: PERF_RECORD_SWITCH_CPU_WIDE OUT          next pid/tid:     0/0
         swapper     0 [001]   10.950007000: PERF_RECORD_SWITCH_CPU_WIDE IN           prev pid/tid:    15/15
         swapper     0 [001]   11.000000000: PERF_RECORD_SWITCH_CPU_WIDE OUT preempt  next pid/tid:   699/700
       fxnoise/1   700 [001]   11.000001000: PERF_RECORD_SWITCH_CPU_WIDE IN           prev pid/tid:     0/0
       fxnoise/1   700 [001]   11.500000000: PERF_RECORD_SWITCH_CPU_WIDE OUT          next pid/tid:     0/0
         swapper     0 [001]   11.500001000: PERF_RECORD_SWITCH_CPU_WIDE IN           prev pid/tid:   699/700
         swapper     0 [001]   11.600000000: PERF_RECORD_SWITCH_CPU_WIDE OUT          next pid/tid:   699/700
";

#[test]
fn an_idle_core_with_a_runnable_measuring_thread_is_throttled() {
    let throttled = |start, length| event(1, start, length, Kind::Throttling, "");
    let rcu = event(1, 10_950_001_000, 5_000, Kind::KernelThread, "rcu_preempt");
    assert_eq!(events(Start::Line, THROTTLED), [rcu, throttled(10_950_007_000, 49_993_000)]);
    // The scheduler's events have the state, those of osnoise do not: measuring threads do not sleep.
    let switch = |state: &str| {
        format!(
            "  spin-77 [001] d... 50.000000: sched_switch: prev_comm=spin prev_pid=77 prev_prio=79 prev_state={state} \
             ==> next_comm=swapper/1 next_pid=0 next_prio=120\n\
             <idle>-0 [001] d... 50.050000: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R \
             ==> next_comm=spin next_pid=77 next_prio=79\n"
        )
    };
    for state in ["R", "R+"] {
        assert_eq!(events(Start::Line, &switch(state)), [throttled(50_000_000_000, 50_000_000)]);
    }
    assert_eq!(events(Start::Line, &switch("S")), []);
    let osnoise =
        "  <idle>-0 [001] d.... 50.050000: thread_noise: swapper/1:0 start 50.000000000 duration 49000000 ns\n";
    let throttled = Event { net: true, ..throttled(50_000_000_000, 49_000_000) };
    assert_eq!(events(Start::Field, osnoise), [throttled]);
}

fn header() -> Header {
    let text = r#"{"host":"","kernel":"","processor":"","virtual_machine":null,"method":"spin","program":"","clock":"",
        "clock_hz":1,"quantum":0,"threshold":0,"wanted":0,"monotonic_start":0,"unix_start":0,"priority":null,
        "overhead":null,"cores":[],"notes":[]}"#;
    let header: Header = serde_json::from_str(text).expect("a header");
    assert_eq!(header.method, Method::Spin);
    header
}

/// The causes assigned to detours (start, length) of core 1.
fn named(detours: &[(u64, u64)], events: Vec<Event>, complete: bool, virtual_machine: bool) -> Vec<Cause> {
    named_by(&header(), detours, events, complete, virtual_machine)
}

fn named_by(
    header: &Header,
    detours: &[(u64, u64)],
    events: Vec<Event>,
    complete: bool,
    virtual_machine: bool,
) -> Vec<Cause> {
    named_with_limit(header, detours, events, (complete, virtual_machine), None)
}

fn named_with_limit(
    header: &Header,
    detours: &[(u64, u64)],
    events: Vec<Event>,
    (complete, virtual_machine): (bool, bool),
    limit: Option<RealtimeLimit>,
) -> Vec<Cause> {
    let mut trace = Vec::new();
    let mut writer = Writer::new(&mut trace, header).expect("to memory");
    for &(start, length) in detours {
        writer.push(1, Detour { start, length, cause: UNKNOWN }).expect("to memory");
    }
    writer.finish(&Summary::default()).expect("to memory");
    let recognised = &cause::recognise(Reader::new(&trace[..]).expect("whole"), limit).expect("whole");
    let naming = EventContext { start: 1_000_000, complete, virtual_machine, recognised };
    let mut copy = Vec::new();
    let reader = Reader::new(&trace[..]).expect("whole");
    let summary = name(reader, events.into_iter(), naming, &mut copy, &|| vec!["who".to_owned()]).expect("named");
    assert_eq!(summary.expect("an end").notes, ["who"]);
    let mut reader = Reader::new(&copy[..]).expect("whole");
    let mut causes = Vec::new();
    while let Some(item) = reader.next_item().expect("whole") {
        if let Item::Detours(core, found) = item {
            assert_eq!(core, 1);
            causes.extend(found.iter().map(|detour| reader.causes()[detour.cause as usize].clone()));
        }
    }
    causes
}

#[test]
fn a_detour_is_named_by_the_longest_event_on_its_core() {
    let happened = vec![
        event(1, 1_100_000, 3_000, Kind::Interrupt, "timer"),
        event(0, 1_100_000, 90_000, Kind::Task, "elsewhere"),
        event(1, 1_103_000, 60_000, Kind::Task, "daemon"),
    ];
    let causes = named(&[(20_000, 5_000), (99_000, 70_000), (300_000, 9_000)], happened, false, true);
    assert_eq!(causes, [Cause::unknown(), Cause::new(Kind::Task, "daemon"), Cause::unknown()]);
}

#[test]
fn an_event_shorter_than_a_tenth_of_a_detour_does_not_name_it() {
    let thread = || vec![event(1, 1_110_000, 20_000, Kind::KernelThread, "kworker/1:1")];
    let kind = |length, complete| named(&[(100_000, length)], thread(), complete, true)[0].kind;
    assert_eq!([kind(25_000, true), kind(200_000, true)], [Kind::KernelThread; 2]);
    assert_eq!([kind(200_010, true), kind(200_010, false)], [Kind::Hypervisor, Kind::Unknown]);
}

/// 2 s with a tick of 250 Hz that takes 8 us, and other detours of 3 us at irregular times.
fn ticking() -> Vec<(u64, u64)> {
    let ticks = (0..500).map(|i| (1_700_000 + i * 4_000_000, 8_000));
    let others = (0..400).map(|i| (300_000 + i * 4_913_107, 3_000));
    let mut all: Vec<(u64, u64)> = ticks.chain(others).collect();
    all.sort_unstable();
    all
}

#[test]
fn detours_at_the_tick_rate_are_ticks_even_if_a_thread_runs_briefly_after_them() {
    let detours = ticking();
    let tick = Cause::new(Kind::Interrupt, "timer tick");
    // A thread that runs for a fifth of each tick's time does not name it; one that runs for most of it does.
    let thread = |length: u64| {
        let ran = move |&(start, _): &(u64, u64)| event(1, start + 1_000_000 + 1_000, length, Kind::Task, "short");
        detours.iter().filter(|detour| detour.1 == 8_000).map(ran).collect::<Vec<_>>()
    };
    for (events, expected) in
        [(Vec::new(), tick.clone()), (thread(1_600), tick.clone()), (thread(6_000), Cause::new(Kind::Task, "short"))]
    {
        let causes = named(&detours, events, false, false);
        let of_ticks = detours.iter().zip(&causes).filter(|(detour, _)| detour.1 == 8_000);
        assert!(of_ticks.clone().all(|(_, cause)| *cause == expected), "{expected:?}");
        let wrong = detours.iter().zip(&causes).filter(|(detour, cause)| detour.1 == 3_000 && **cause == tick);
        assert!(wrong.count() < 10, "others fall into the tick's window by chance only");
    }
    // Without a period, nothing is a tick.
    let others: Vec<(u64, u64)> = detours.into_iter().filter(|detour| detour.1 == 3_000).collect();
    assert!(named(&others, Vec::new(), false, false).iter().all(|cause| cause.kind == Kind::Unknown));
}

#[test]
fn detours_of_the_real_time_limit_are_recognised() {
    let limit = Some(RealtimeLimit { period: 1_000_000_000, runtime: 950_000_000 });
    // 50 ms every second, once slightly more; also 50 ms at another time, and 20 ms every second.
    let detours = [
        (100_000_000, 50_000_000),
        (500_000_000, 20_000_000),
        (1_100_000_000, 53_000_000),
        (1_500_000_000, 20_000_000),
        (2_098_000_000, 50_000_000),
        (2_800_000_000, 50_000_000),
    ];
    let limited = |priority, limit| {
        let causes = named_with_limit(&Header { priority, ..header() }, &detours, Vec::new(), (false, false), limit);
        causes.iter().map(|cause| cause.label() == "throttling of real-time threads").collect::<Vec<_>>()
    };
    assert_eq!(limited(Some(20), limit), [true, false, true, false, true, false]);
    // Threads without real-time priority are not limited, nor is any thread if the limit is off.
    assert_eq!(limited(None, limit), [false; 6]);
    assert_eq!(limited(Some(20), None), [false; 6]);
}

#[test]
fn the_real_time_limit_and_the_measurement_itself_are_not_noise_of_the_host() {
    let realtime = Header { priority: Some(20), ..header() };
    for kind in Kind::ALL {
        let cause = Cause::new(kind, "");
        assert_eq!(realtime.comes_from_measuring(&cause), matches!(kind, Kind::Own | Kind::Throttling), "{kind:?}");
        // Throttling of other threads is due to a control group and affects all its programs.
        assert_eq!(header().comes_from_measuring(&cause), kind == Kind::Own, "{kind:?}");
    }
}

#[test]
fn with_a_quantum_events_anywhere_in_the_affected_piece_or_interval_match() {
    // Pieces of 100 us. One took 10 us more for an interrupt 85 us after its start, the next for another one.
    let interrupt = |start| event(1, start, 9_000, Kind::Interrupt, "timer");
    let found = |method, start: u64| {
        let header = Header { method, quantum: 100_000, ..header() };
        named_by(&header, &[(500_000, 10_000)], vec![interrupt(start)], true, false)[0].kind
    };
    for method in [Method::Fwq, Method::Dgemm, Method::Ftq] {
        assert_eq!(found(method, 1_585_000), Kind::Interrupt, "{method:?}");
        assert_eq!(found(method, 1_620_000), Kind::Hardware, "{method:?}");
    }
    assert_eq!(found(Method::Spin, 1_585_000), Kind::Hardware);
}

#[test]
fn detours_without_events_are_hardware_or_host_if_events_are_complete() {
    let kind = |complete, vm| named(&[(20_000, 5_000)], Vec::new(), complete, vm)[0].kind;
    assert_eq!(kind(true, true), Kind::Hypervisor);
    assert_eq!(kind(true, false), Kind::Hardware);
    assert_eq!(kind(false, true), Kind::Unknown);
}

#[test]
fn tracers_cover_the_measured_cores_and_osnoise_runs_no_workload() {
    let value = |settings: Vec<(String, String)>, path: &str| settings.into_iter().find(|s| s.0 == path).map(|s| s.1);
    assert_eq!(value(plain_settings(&[0, 33]), "tracing_cpumask").as_deref(), Some("00000002,00000001"));
    assert_eq!(value(osnoise_settings(&[2]), "tracing_cpumask").as_deref(), Some("00000004"));
    assert_eq!(value(osnoise_settings(&[2]), "/osnoise/options").as_deref(), Some("NO_OSNOISE_WORKLOAD"));
    assert_eq!(value(osnoise_settings(&[2]), "trace_clock").as_deref(), Some("mono"));
}

#[test]
fn a_host_without_tracers_says_why_detours_have_no_names() {
    let empty = tempfile::tempdir().expect("a folder");
    let spool = empty.path().join("spool");
    let (tracer, reasons) = cause::start(empty.path(), Path::new("/nonexistent/perf"), &[0], &spool);
    assert!(tracer.is_none());
    assert!(reasons[0].contains("tracefs is not there"), "{reasons:?}");
    assert!(reasons[1].contains("perf, which names tasks and kernel threads, cannot be started"), "{reasons:?}");
}

proptest! {
    #[test]
    fn damaged_lines_are_skipped_without_a_panic(at in any::<prop::sample::Index>(), with in any::<char>(), which in 0..2usize) {
        let text = [OSNOISE, PLAIN][which];
        let mut chars: Vec<char> = text.chars().collect();
        let at = at.index(chars.len());
        chars[at] = with;
        let found = events(Start::Field, &chars.iter().collect::<String>());
        prop_assert!(found.len() <= 6);
    }
}
