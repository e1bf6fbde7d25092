//! Files of other programs: their contents are found, errors are reported with file and line.

use fxscope_osnoise::import::{Error, Format, Imported, Source, read};
use fxscope_osnoise::trace::{Cause, Kind, Reader};
use fxscope_osnoise::view::{View, summarise};
use proptest::prelude::*;

fn source<'a>(name: &'a str, text: &'a str) -> Source<'a> {
    Source { name, bytes: text.as_bytes() }
}

fn import(format: Format, files: &[(&str, &str)]) -> Result<Imported, Error> {
    let sources: Vec<Source<'_>> = files.iter().map(|(name, text)| source(name, text)).collect();
    read(format, &sources, 1e9)
}

fn view(imported: &Imported) -> View {
    let file = imported.write(Vec::new()).expect("to memory");
    summarise(Reader::new(&file[..]).expect("a trace")).expect("whole")
}

/// Start and length of each detour of a core.
fn detours(imported: &Imported, core: u32) -> Vec<(u64, u64)> {
    imported.cores[&core].iter().map(|(start, length, _)| (*start, *length)).collect()
}

const OSNOISE: &str = "\
       osnoise/3-961     [003] d.h..   100.000010: irq_noise: local_timer:236 start 100.000007500 duration 2000 ns
     kworker/3:1-54      [003] d....   100.000050: thread_noise: kworker/3:1:54 start 100.000021000 duration 28000 ns
       osnoise/3-961     [003] .....   100.000061: sample_threshold: start 100.000007000 duration 53000 ns interferences 2
       osnoise/4-962     [004] .....   100.500000: sample_threshold: start 100.499900000 duration 7000 ns interferences 0
";

#[test]
fn osnoise_samples_are_detours_named_by_their_longest_event() {
    let imported = import(Format::Trace, &[("trace", OSNOISE)]).expect("understood");
    assert_eq!(imported.cores[&3], [(0, 53_000, Cause::new(Kind::KernelThread, "kworker/3:1"))]);
    let hardware = Cause::new(Kind::Hardware, "without an event");
    assert_eq!(imported.cores[&4], [(499_893_000, 7_000, hardware)]);
}

#[test]
fn without_samples_events_are_detours() {
    let text: String =
        OSNOISE.lines().filter(|line| !line.contains("sample")).map(|line| format!("{line}\n")).collect();
    let imported = import(Format::Trace, &[("trace", &text)]).expect("understood");
    assert_eq!(detours(&imported, 3), [(0, 2_000), (13_500, 28_000)]);
    assert!(imported.summary.notes[0].contains("no osnoise samples"));
}

/// An interrupt of 0.8 ms within a soft interrupt of 0.9 ms within a kernel thread of 1 ms; then an interrupt of 3 us.
const NESTED: &str = "\
          <idle>-0       [001] d..2.   200.100000: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=kworker/1:2 next_pid=55 next_prio=120
     kworker/1:2-55      [001] ..s..   200.100050: softirq_entry: vec=3 [action=NET_RX]
     kworker/1:2-55      [001] d.h..   200.100100: irq_handler_entry: irq=24 name=eth0
     kworker/1:2-55      [001] d.h..   200.100900: irq_handler_exit: irq=24 ret=handled
     kworker/1:2-55      [001] ..s..   200.100950: softirq_exit: vec=3 [action=NET_RX]
     kworker/1:2-55      [001] d..2.   200.101000: sched_switch: prev_comm=kworker/1:2 prev_pid=55 prev_prio=120 prev_state=I ==> next_comm=swapper/1 next_pid=0 next_prio=120
          <idle>-0       [001] d.h..   200.102000: local_timer_entry: vector=236
          <idle>-0       [001] d.h..   200.102003: local_timer_exit: vector=236
";

#[test]
fn nested_events_are_counted_once_for_the_innermost() {
    let imported = import(Format::Trace, &[("trace", NESTED)]).expect("understood");
    let view = view(&imported);
    // 1.003 ms of 2.003 ms.
    assert_eq!((view.duration, view.all.time), (2_003_000, 1_003_000));
    let time = |kind: Kind, name: &str| {
        let cause = Cause::new(kind, name);
        view.causes.iter().find(|(known, _)| *known == cause).map(|(_, part)| part.time)
    };
    assert_eq!(time(Kind::Interrupt, "24 eth0"), Some(800_000));
    assert_eq!(time(Kind::SoftInterrupt, "NET_RX"), Some(100_000));
    assert_eq!(time(Kind::KernelThread, "kworker/1:2"), Some(100_000));
    assert_eq!(time(Kind::Interrupt, "local_timer"), Some(3_000));
}

#[test]
fn osnoise_events_are_net_and_other_events_beside_them_are_dropped() {
    let net = "\
     kworker/1:2-55      [001] d.h..   200.100910: irq_noise: eth0:24 start 200.100100000 duration 800000 ns
     kworker/1:2-55      [001] d..2.   200.101000: thread_noise: kworker/1:2:55 start 200.100000000 duration 200000 ns
";
    let imported = import(Format::Trace, &[("trace", &format!("{NESTED}{net}"))]).expect("understood");
    assert_eq!(detours(&imported, 1), [(0, 200_000), (200_000, 800_000)]);
}

/// In the format of rtla's manual page.
const TOP: &str = "\
                                          Operating System Noise
duration:   0 00:01:00 | time is in us
CPU Period       Runtime        Noise  % CPU Aval   Max Noise   Max Single          HW          NMI          IRQ      Softirq       Thread
  0 #59         59000000       295000    99.50000        6978           56         549            0        59111         1590           13
  7 #59         59000000       590000    99.00000        8092           24         399            0        59130         1448           31
";

#[test]
fn the_rtla_table_gives_shares_and_counts() {
    let imported = import(Format::RtlaTop, &[("top.txt", TOP)]).expect("understood");
    let view = view(&imported);
    assert_eq!(view.duration, 59_000_000_000);
    assert!((view.cores[&0].share(view.duration, 1) - 0.005).abs() < 1e-12);
    assert!((view.all.share(view.duration, 2) - 0.0075).abs() < 1e-12);
    assert_eq!(view.cores[&0].longest, 56_000);
    let counted = &imported.summary.cores[1].counted;
    assert!(counted.iter().any(|c| c.cause.kind == Kind::Interrupt && c.amount == 59_130));
}

const HIST: &str = "\
# RTLA osnoise histogram
# Time unit is microseconds (us)
# Duration:   0 00:01:00
Index   CPU-000   CPU-001
0           100       200
10           50         0
over:         0         0
count:      150       200
min:          0         0
avg:          3         0
max:         10         0
";

#[test]
fn the_rtla_histogram_gives_counts_and_time() {
    let view = view(&import(Format::RtlaHist, &[("hist.txt", HIST)]).expect("understood"));
    assert_eq!((view.duration, view.all.detours, view.all.time), (60_000_000_000, 350, 500_000));
    assert_eq!(view.cores[&0].longest, 10_000);
}

#[test]
fn samples_beyond_the_rtla_histogram_are_counted_and_named() {
    let text = HIST
        .replace("over:         0         0", "over:         0         3")
        .replace("max:         10         0", "max:         10       340");
    let imported = import(Format::RtlaHist, &[("hist.txt", &text)]).expect("understood");
    let view = view(&imported);
    // One of 340 us, two of at least the last bucket's 10 us; and 50 of 10 us on the other core.
    assert_eq!((view.cores[&1].detours, view.cores[&1].time, view.cores[&1].longest), (203, 360_000, 340_000));
    let note = "CPU 1: 3 samples were beyond the histogram; the longest is counted with 340 us, the others with 10 us at least";
    assert!(imported.summary.notes.iter().any(|known| known == note), "{:?}", imported.summary.notes);
    // Newer versions append sums over all CPUs, and write fractions.
    let text = format!(
        "{}ALL:      IRQ\ncount:    350\n",
        HIST.replace("avg:          3         0", "avg:       3.33      0.00")
    );
    assert_eq!(import(Format::RtlaHist, &[("hist.txt", &text)]).map(|found| found.cores.len()), Ok(0));
}

/// Linux's own lines of perf script and trace-cmd report, with the subsystem and in the short form of libtraceevent.
const SCRIPT: &str = "\
osnoise/3  7267 [003]   100.000520: osnoise:sample_threshold: start 100.000295000 duration 160000 ns interference 1
osnoise/3  7267 [003]   100.000100:        osnoise:irq_noise: local_timer:236 start 100.000298000 duration 2000 ns
";
const SWITCHES: [&str; 2] = [
    "\
swapper     0 [001]   200.100000:       sched:sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=my app next_pid=55 next_prio=120
my app    55 [001]   200.300000:       sched:sched_switch: prev_comm=my app prev_pid=55 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
",
    "\
          <idle>-0     [001]   200.100000: sched_switch:         swapper/1:0 [120] R ==> my app:55 [120]
          my app-55    [001]   200.300000: sched_switch:         my app:55 [120] S ==> swapper/1:0 [120]
",
];

#[test]
fn events_of_perf_script_and_trace_cmd_are_those_of_the_tracer() {
    let imported = import(Format::Trace, &[("script", SCRIPT)]).expect("understood");
    assert_eq!(imported.cores[&3], [(0, 160_000, Cause::new(Kind::Interrupt, "local_timer:236"))]);
    for text in SWITCHES {
        let imported = import(Format::Trace, &[("script", text)]).expect("understood");
        assert_eq!(imported.cores[&1], [(0, 200_000_000, Cause::new(Kind::Task, "my app"))], "{text}");
    }
    // Each core has samples of its own, or none.
    let both = import(Format::Trace, &[("script", &format!("{SCRIPT}{}", SWITCHES[0]))]).expect("understood");
    assert_eq!((detours(&both, 3)[0].1, detours(&both, 1)[0].1), (160_000, 200_000_000));
    assert!(both.summary.notes.iter().any(|note| note.starts_with("CPU 1 has no osnoise samples")));
}

const SUMS: &str = "\
# tracer: osnoise
#  TASK-PID      CPU#    TIMESTAMP    IN US       IN US  AVAILABLE  IN US     HW    NMI    IRQ   SIRQ THREAD
   <...>-859    [000] ....    81.637220: 1000000        190  99.98100       9     18      0   1007     18      1
   <...>-860    [001] ....    81.638154: 1000000        656  99.93440      74     23      0   1006     16      3
   <...>-859    [000] ....    82.637220: 1000000        210  99.97900      12     18      0   1007     18      1
   <...>-860    [001] ....    82.638154: 1000000        656  99.93440      74     23      0   1006     16      3
";

#[test]
fn sums_of_the_osnoise_tracer_are_totals() {
    let imported = import(Format::Trace, &[("trace", SUMS)]).expect("understood");
    let view = view(&imported);
    assert_eq!(view.duration, 2_000_000_000);
    let share = |core: u32| view.cores[&core].share(view.duration, 1);
    assert!((share(0) - 0.0002).abs() < 1e-12 && (share(1) - 0.000_656).abs() < 1e-12);
    assert_eq!((view.cores[&0].longest, view.cores[&1].longest), (12_000, 74_000));
    let interrupts = imported.summary.cores[0].counted.iter().find(|c| c.cause.kind == Kind::Interrupt);
    assert_eq!(interrupts.map(|counted| counted.amount), Some(2_014));
    // Beside events, sums would be counted twice.
    let both = import(Format::Trace, &[("trace", &format!("{SUMS}{OSNOISE}"))]).expect("understood");
    assert_eq!(both.cores[&3].len(), 1);
    assert!(both.summary.notes.iter().any(|note| note.contains("sums of each period are left out")));
}

const TIMERLAT_TOP: &str = "\
                                     Timer Latency
  0 00:00:06   |          IRQ Timer Latency (us)        |         Thread Timer Latency (us)
CPU COUNT      |      cur       min       avg       max |      cur       min       avg       max
  0 #6000      |        0         0         1        19 |        1         1         5        35
  1 #6000      |        0         0         2        15 |        2         1         4        28
";
const TIMERLAT_HIST: &str = "\
# RTLA timerlat histogram
# Time unit is microseconds (us)
# Duration:   0 00:01:00
Index   IRQ-000   Thr-000   IRQ-001   Thr-001
0         59990         0     59900         0
1             9     50000        99     49000
2             1      9999         1     10999
over:         0         1         0         1
count:    60000     60000     60000     60000
min:          0         1         0         1
avg:          0         1         0         1
max:          2        41         2        31
";

#[test]
fn latencies_of_rtla_timerlat_are_those_of_the_threads() {
    let top = view(&import(Format::RtlaTop, &[("top.txt", TIMERLAT_TOP)]).expect("understood"));
    assert_eq!((top.duration, top.all.time), (6_000_000_000, 6_000 * (5_000 + 4_000)));
    assert_eq!((top.cores[&0].longest, top.cores[&1].longest), (35_000, 28_000));
    let imported = import(Format::RtlaHist, &[("hist.txt", TIMERLAT_HIST)]).expect("understood");
    let hist = view(&imported);
    assert_eq!((imported.program.as_str(), hist.duration), ("rtla timerlat hist", 60_000_000_000));
    let time = (50_000 + 2 * 9_999 + 41) + (49_000 + 2 * 10_999 + 31);
    assert_eq!((hist.all.detours, hist.all.time, hist.all.longest), (120_000, time * 1_000, 41_000));
    // How late the timer's interrupt was is a part of it.
    let until_interrupt = &imported.summary.cores[0].counted[1];
    assert_eq!((until_interrupt.cause.kind, until_interrupt.amount), (Kind::Interrupt, (9 + 2) * 1_000));
}

#[test]
fn cyclictest_has_a_line_or_a_histogram_for_each_thread() {
    let lines = "\
# /dev/cpu_dma_latency set to 0us
T: 0 ( 1234) P:95 I:1000 C:  10000 Min:      2 Act:    3 Avg:    4 Max:      57
T: 1 ( 1235) P:95 I:1000 C:  10000 Min:      2 Act:    3 Avg:    4 Max:      31
";
    let found = view(&import(Format::Cyclictest, &[("c.txt", lines)]).expect("understood"));
    assert_eq!((found.duration, found.all.time), (10_000_000_000, 2 * 10_000 * 4_000));
    assert_eq!((found.cores[&0].longest, found.cores[&1].longest), (57_000, 31_000));
    let histogram = "\
# Histogram
000000 000000\t000000
000003 000100\t000200
000004 000010\t000000
# Total: 000000111 000000200
# Min Latencies: 00003 00003
# Avg Latencies: 00003 00003
# Max Latencies: 00057 00003
# Histogram Overflows: 00001 00000
# Histogram Overflow at cycle number:
# Thread 0: 00042
";
    let imported = import(Format::Cyclictest, &[("c.txt", histogram)]).expect("understood");
    let found = view(&imported);
    assert_eq!((found.cores[&0].detours, found.cores[&0].time), (111, 340_000 + 57_000));
    assert_eq!((found.cores[&1].detours, found.cores[&1].time, found.cores[&1].longest), (200, 600_000, 3_000));
    assert!(imported.summary.notes.iter().any(|note| note.contains("shares of time are unknown")));
}

/// 10 intervals of 1 ms with at most 1000 units of work; in one a quarter is missing, in another a tenth.
fn ftq_lines() -> String {
    let line = |i: u64| {
        format!("{} {}\n", (i + 1) * 1_000_000, [1000, 750, 1000, 1000, 900, 1000, 1000, 1000, 1000, 995][i as usize])
    };
    (0..10).map(line).collect()
}

#[test]
fn missing_work_in_ftq_is_a_detour() {
    let text = format!("# Frequency 1000.000000\n# thread 0, core 5\n{}", ftq_lines());
    let imported = import(Format::Ftq, &[("ftq_0.dat", &text)]).expect("understood");
    // Half a percent is below the resolution of the work count.
    assert_eq!(detours(&imported, 5), [(1_000_000, 250_000), (4_000_000, 100_000)]);
    assert_eq!((imported.quantum, imported.summary.duration), (1_000_000, 10_000_000));
}

#[test]
fn a_pair_of_ftq_files_has_times_in_ticks() {
    let (times, counts): (String, String) = ftq_lines()
        .lines()
        .map(|line| line.split_once(' ').expect("two"))
        .map(|(t, c)| (format!("{t}\n"), format!("{c}\n")))
        .unzip();
    let files = [source("ftq_20_times.dat", &times), source("ftq_20_counts.dat", &counts)];
    // With two ticks per ns, all lengths are halved.
    let imported = read(Format::Ftq, &files, 2e9).expect("understood");
    assert_eq!(detours(&imported, 20), [(500_000, 125_000), (2_000_000, 50_000)]);
    let alone = read(Format::Ftq, &files[..1], 1e9).expect_err("one of two");
    assert_eq!(alone.to_string(), "ftq_20_times.dat: needs ftq_20_counts.dat in the same folder");
}

#[test]
fn slow_pieces_in_fwq_are_detours() {
    let imported = import(Format::Fwq, &[("fwq_3_times.dat", "1000\n1000\n1500\n1010\n1000\n")]).expect("understood");
    assert_eq!(detours(&imported, 3), [(2_000, 500)]);
    assert_eq!(imported.summary.duration, 5_510);
}

#[test]
fn the_three_netgauge_benchmarks_are_distinguished() {
    let selfish = "# Selfish Benchmark\n# Minimal cycle length [ns]: 25.5 \n# Time [ns]\tselfish duration [ns]\n\
                   10.00\t5000.00\n1000010.00\t6000.00\n# Measurement period: 2.00 s\n";
    let fwq = "# Fixed Work Quantum Benchmark\n# cycle number    duration [us]\n0             100\n1             150\n2             100\n";
    let ftq = "# Compute-Cycle Duration: 1000 usec\n# Fixed Time Quantum Benchmark\n 0                500\n 1                400\n 2                500\n";
    let imported = import(Format::Netgauge, &[("ng.0", selfish)]).expect("understood");
    assert_eq!(
        (detours(&imported, 0), imported.summary.duration),
        (vec![(10, 5_000), (1_000_010, 6_000)], 2_000_000_000)
    );
    let imported = import(Format::Netgauge, &[("ng.1", fwq)]).expect("understood");
    assert_eq!(detours(&imported, 1), [(100_000, 50_000)]);
    let imported = import(Format::Netgauge, &[("ng.2", ftq)]).expect("understood");
    assert_eq!(detours(&imported, 2), [(1_000_000, 200_000)]);
}

#[test]
fn malformed_lines_are_reported_with_file_and_line() {
    let message = |format, text: &str| import(format, &[("x.dat", text)]).expect_err("malformed").to_string();
    assert_eq!(message(Format::Fwq, "1000\nabc\n"), "x.dat, line 2: 'abc' is not a time in ticks");
    assert_eq!(message(Format::Ftq, "# x\n1 2 3\n"), "x.dat, line 2: '1 2 3' is not a time in ns and a count");
    assert_eq!(message(Format::Fwq, ""), "x.dat: is empty: lines with a time in ticks were expected");
    assert!(message(Format::RtlaTop, &TOP.replace("  7 #59", "  x #59")).starts_with("x.dat, line 5: 'x #59"));
    assert!(
        message(Format::RtlaHist, &HIST.replace("10           50         0", "10  50"))
            .starts_with("x.dat, line 6: '10  50'")
    );
    assert!(message(Format::RtlaHist, "nothing").contains("begins with a line Index CPU-000"));
    assert!(message(Format::Trace, "nothing").contains("has no recognisable event"));
    assert!(message(Format::Cyclictest, "nothing").contains("has no line of a thread of cyclictest"));
    assert_eq!(
        message(Format::Cyclictest, "T: 0 ( 1) P:1 I:1000 C: x\n"),
        "x.dat, line 1: 'T: 0 ( 1) P:1 I:1000 C: x' is not a line of cyclictest"
    );
    assert!(message(Format::Netgauge, "1 2\n").contains("does not say which benchmark it is"));
    let twice = import(Format::Fwq, &[("a_1.dat", "1\n"), ("b_1.dat", "1\n")]).expect_err("two of one core");
    assert!(twice.to_string().starts_with("b_1.dat: is the second one of core 1"), "{twice}");
}

proptest! {
    #[test]
    fn damaged_files_give_a_message_or_a_trace_without_a_panic(
        which in 0..10usize, at in any::<prop::sample::Index>(), bytes in prop::collection::vec(any::<u8>(), 0..6), remove in 0..9usize,
    ) {
        let ftq = ftq_lines();
        let (format, text) = [
            (Format::Trace, OSNOISE), (Format::RtlaTop, TOP), (Format::RtlaHist, HIST), (Format::Ftq, &ftq[..]),
            (Format::Netgauge, "# Selfish Benchmark\n10.00\t5000.00\n1000010.00\t6000.00\n"), (Format::Trace, SUMS),
            (Format::Trace, SWITCHES[1]), (Format::RtlaTop, TIMERLAT_TOP), (Format::RtlaHist, TIMERLAT_HIST),
            (Format::Cyclictest, "# Histogram\n000003 000100\t000200\n# Total: 1 2\nT: 0 ( 1) P:95 I:10 C: 9 Min: 2 Act: 3 Avg: 4 Max: 5\n"),
        ][which];
        let mut all = text.as_bytes().to_vec();
        let at = at.index(all.len());
        let end = (at + remove).min(all.len());
        all.splice(at..end, bytes);
        match read(format, &[Source { name: "f", bytes: &all }], 1e9) {
            Ok(imported) => drop(view(&imported)),
            Err(error) => prop_assert!(error.to_string().starts_with("f"), "{}", error),
        }
    }
}
