//! Parsing of the kernel's files: those of real hosts, of kernels that lack files, and damaged ones.

use std::fs;
use std::path::{Path, PathBuf};

use fxscope_hostinfo::memory::{
    Files, Host, Notes, Process, ProcessTexts, Segment, about_host, about_process, parse_numa_maps, parse_smaps, read,
    size,
};
use proptest::prelude::*;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Files of a host with two cores and Linux 6.18, and of two processes: one that requested large pages and one that did
/// not.
fn captured() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/pages/linux-6.18")
}

fn host() -> Host {
    Host::parse(Some(4096), &read::files(&captured()))
}

fn text(name: &str) -> String {
    fs::read_to_string(captured().join(name)).expect("captured")
}

fn process(folder: &str) -> Process {
    let optional = |name: &str| fs::read_to_string(captured().join(folder).join(name)).ok();
    let texts = ProcessTexts {
        smaps: text(&format!("{folder}/smaps")),
        numa_maps: optional("numa_maps"),
        status: optional("status").unwrap_or_default(),
        exe: Some("/usr/bin/python3.11".to_owned()),
    };
    Process::parse(7, &texts)
}

fn has(found: &[String], part: &str) -> bool {
    found.iter().any(|sentence| sentence.contains(part))
}

/// Returns a process with one mapping.
fn one(header: &str, fields: &str) -> Process {
    let smaps = format!("{header}\n{fields}");
    Process::parse(1, &ProcessTexts { smaps, exe: Some("/bin/a.out".to_owned()), ..ProcessTexts::default() })
}

const HEAP: &str = "10000000-d6600000 rw-p 00000000 00:00 0   [heap]";

#[test]
fn a_host_with_all_files_is_parsed_without_notes() {
    let host = host();
    assert_eq!(host.notes, Vec::<String>::new());
    assert_eq!(host.pools.iter().map(|pool| pool.page).collect::<Vec<_>>(), [2 * MIB, 1024 * MIB]);
    assert_eq!((host.pools[0].total, host.pools[0].free, host.pools[0].reserved), (0, Some(0), Some(0)));
    assert_eq!((host.nodes.len(), host.nodes[0].pools.len()), (1, 2));
    let thp = host.thp.as_ref().expect("there");
    assert_eq!((thp.enabled.as_deref(), thp.page), (Some("madvise"), Some(2 * MIB)));
    assert_eq!(thp.khugepaged["max_ptes_none"], 511);
    assert_eq!(thp.sizes.first().map(|one| one.page), Some(8 * KIB));
    let found = about_host(&host);
    assert!(has(&found, "THP is madvise") && has(&found, "hugetlbfs 2 MiB: no pages in the pool"), "{found:?}");
    assert!(has(&found, "All smaller THP sizes (16 KiB to 1 MiB) are never"), "{found:?}");
}

#[test]
fn a_missing_file_leaves_out_only_its_own_values() {
    let files = read::files(&captured());
    for gone in files.keys() {
        let mut fewer = files.clone();
        fewer.remove(gone);
        let host = Host::parse(Some(4096), &fewer);
        assert_eq!(host.notes, Vec::<String>::new(), "{gone}");
        assert_eq!(host.pools.len(), 2, "{gone}");
        assert!(has(&about_host(&host), "hugetlbfs 2 MiB"), "{gone}");
    }
    let without = |part: &str| files.clone().into_iter().filter(|(path, _)| !path.contains(part)).collect::<Files>();
    assert!(Host::parse(None, &without("transparent_hugepage")).thp.is_none());
    let old = Host::parse(None, &without("transparent_hugepage/hugepages-"));
    assert!(old.thp.is_some_and(|thp| thp.sizes.is_empty()), "kernels before 6.8 have one size");
    assert!(has(&about_host(&Host::parse(None, &Files::new())), "no hugetlbfs"));
}

#[test]
fn pools_on_only_one_node_are_reported() {
    let mut files = Files::new();
    let mut put = |path: &str, text: &str| files.insert(path.to_owned(), text.to_owned());
    put("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "512");
    put("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "100");
    put("sys/kernel/mm/hugepages/hugepages-2048kB/resv_hugepages", "40");
    for (node, free) in [(4, "0"), (5, "100"), (10, "0")] {
        let folder = format!("sys/devices/system/node/node{node}/hugepages/hugepages-2048kB");
        put(&format!("{folder}/nr_hugepages"), "128");
        put(&format!("{folder}/free_hugepages"), free);
    }
    let host = Host::parse(Some(64 * KIB), &files);
    assert_eq!(host.nodes.iter().map(|node| node.number).collect::<Vec<_>>(), [4, 5, 10]);
    let found = about_host(&host);
    assert!(has(&found, "512 pages (1 GiB), 100 free, 40 of these reserved"), "{found:?}");
    assert!(has(&found, "all free pages are on node 5, none on node 4, 10"), "{found:?}");
}

#[test]
fn memory_is_summed_by_segment() {
    let process = process("asked");
    assert_eq!(process.notes, Vec::<String>::new());
    assert_eq!((process.name.as_str(), process.thp_enabled), ("python3", Some(true)));
    let part = |segment| process.segments.iter().find(|part| part.segment == segment).expect("there");
    let text = part(Segment::Text);
    assert_eq!((text.mappings, text.mapped), (4, 16 * KIB));
    assert_eq!((part(Segment::Data).mappings, part(Segment::Data).mapped), (1, 4 * KIB));
    assert_eq!(part(Segment::Files).mappings, 5, "of the C library");
    assert_eq!(part(Segment::Kernel).mappings, 4);
    let anonymous = part(Segment::Anonymous);
    assert_eq!((anonymous.rss, anonymous.transparent, anonymous.base()), (300 * MIB, 300 * MIB, 0));
    assert_eq!(anonymous.nodes, [(0, 300 * MIB)]);
    assert_eq!(part(Segment::Heap).nodes, [(0, 386 * 4 * KIB)]);
    let sum: u64 = process.mappings.iter().map(|mapping| mapping.rss).sum();
    assert_eq!(process.segments.iter().map(|part| part.rss).sum::<u64>(), sum);
}

#[test]
fn findings_show_whether_large_pages_were_requested_and_obtained() {
    let found = about_process(&host(), &process("asked"));
    assert!(has(&found, "anonymous: 300 MiB of 300 MiB (100 %) in transparent huge pages"), "{found:?}");
    let found = about_process(&host(), &process("not-asked"));
    let wanted = "THP is madvise: this program's 300 MiB anonymous memory did not request huge pages and has none.";
    assert!(has(&found, wanted), "{found:?}");
}

#[test]
fn each_reason_for_base_pages_has_a_finding() {
    let with = |enabled: &str, header: &str, fields: &str| {
        let mut host = host();
        host.thp.as_mut().expect("there").enabled = Some(enabled.to_owned());
        let found = about_process(&host, &one(header, fields));
        assert_eq!(found.len(), 1, "{found:?}");
        found[0].clone()
    };
    let rss = "Rss: 3250586 kB";
    let says = |sentence: String, part: &str| assert!(sentence.contains(part), "{sentence}");
    says(with("madvise", HEAP, rss), "this program's 3.1 GiB heap did not request huge pages and has none");
    says(with("never", HEAP, rss), "THP is never: this program's 3.1 GiB heap has none");
    says(with("always", HEAP, rss), "THP is always, but");
    says(with("madvise", HEAP, &format!("{rss}\nVmFlags: rd wr hg")), "THP was requested");
    says(with("always", HEAP, &format!("{rss}\nVmFlags: rd wr nh")), "MADV_NOHUGEPAGE");
    says(with("always", "10000000-d6600000 r--p 0 fe:00 9 /data", rss), "File mappings use base pages");
    says(with("always", "10000000-d6600000 rw-s 0 00:01 9 /dev/shm/x", rss), "shared memory has none");
    says(with("always", HEAP, "Rss: 4096 kB"), "No segment has more than 4 MiB in memory, which 1024 TLB entries");
    let huge = "KernelPageSize: 2048 kB\nMMUPageSize: 2048 kB\nPrivate_Hugetlb: 1048576 kB";
    says(
        with("never", "10000000-50000000 rw-p 0 00:0f 9 /anon_hugepage (deleted)", huge),
        "1 GiB in hugetlbfs pages of 2 MiB",
    );
}

#[test]
fn bss_directly_follows_data() {
    let mapping = |range: &str, path: &str| format!("{range} rw-p 00000000 00:00 0 {path}\nRss: 4 kB\n");
    let smaps = [
        mapping("400000-401000", "/bin/a.out"),
        mapping("401000-500000", ""),
        mapping("600000-700000", ""),
        mapping("700000-800000", "[stack]"),
    ];
    let texts = ProcessTexts { smaps: smaps.concat(), ..ProcessTexts::default() };
    let process = Process::parse(1, &texts);
    let segments: Vec<Segment> = process.mappings.iter().map(|mapping| mapping.segment).collect();
    assert_eq!(segments, [Segment::Data, Segment::Bss, Segment::Anonymous, Segment::Stack]);
    assert!(has(&process.notes, "numa_maps"), "what is missing is noted");
}

#[test]
fn misleading_file_names_do_not_change_the_segment() {
    for path in ["/SYSVx", "/SYSV", "/tmp/a b [heap]", "[", "[stack:", "/memfd:[stack]", "/é\u{1b}[2J", "/x (deleted)"]
    {
        let process = one(&format!("1000-2000 rw-s 00000000 00:01 5 {path}"), "Rss: 4 kB");
        assert_eq!((process.mappings.len(), process.mappings[0].rss), (1, 4 * KIB), "{path}");
        assert_ne!(process.mappings[0].segment, Segment::Heap, "{path}");
    }
}

#[test]
fn malformed_lines_are_skipped_with_a_note() {
    let mut notes = Notes::default();
    let text =
        "zzz\nRss: 1 kB\n1000-2000 rw-p 0 00:00 0\nRss: many kB\nSwap: 18446744073709551615 kB\nNew: 1 kB\nRss: 8 kB\n";
    let mappings = parse_smaps(text, &mut notes);
    assert_eq!((mappings.len(), mappings[0].rss, mappings[0].swap), (1, 8 * KIB, 0));
    let notes = notes.into_lines();
    assert_eq!(notes.len(), 3, "{notes:?}");
    assert!(
        notes[0].contains("line 1: 'zzz'") && notes[1].contains("line 4") && notes[2].contains("line 5"),
        "{notes:?}"
    );
    let mut notes = Notes::default();
    let maps = parse_numa_maps("1000 default N0=1\n2000 bind:1 N1=3 kernelpagesize_kB=64\n", &mut notes);
    assert_eq!((maps.len(), maps[0].policy.as_str(), maps[0].nodes[0]), (1, "bind:1", (1, 192 * KIB)));
    assert!(notes.into_lines()[0].contains("numa_maps line 1"), "a count of pages without their size");
}

#[test]
fn sizes_use_the_largest_fitting_unit() {
    let sizes = [0, 1023, 64 * KIB, 2 * MIB, 3_328_600_064, 16 << 30, 1 << 40];
    assert_eq!(sizes.map(size), ["0 B", "1023 B", "64 KiB", "2 MiB", "3.1 GiB", "16 GiB", "1 TiB"]);
}

#[test]
fn missing_processes_and_processes_without_memory_are_distinguished() {
    let folder = std::env::temp_dir().join(format!("fxscope-hostinfo-{}", std::process::id()));
    let put = |pid: u32, status: &str, smaps: Option<&str>| {
        let process = folder.join(pid.to_string());
        fs::create_dir_all(&process).expect("writable");
        fs::write(process.join("stat"), "1 (a) b) S").expect("writable");
        fs::write(process.join("status"), status).expect("writable");
        if let Some(smaps) = smaps {
            fs::write(process.join("smaps"), smaps).expect("writable");
        }
    };
    put(2, "State:\tZ (zombie)\n", Some(""));
    put(3, "State:\tS (sleeping)\nKthread:\t1\n", Some(""));
    put(4, "State:\tR (running)\nVmSize:\t1 kB\n", Some(""));
    put(5, "", None);
    let message = |pid: u32| read::texts(&folder, pid).expect_err("refused").to_string();
    assert!(message(1).contains("there is no process 1 on this host"));
    assert!(message(2).contains("process 2 has ended"));
    assert!(message(3).contains("process 3 is a kernel thread"));
    assert!(message(4).contains("process 4 ended while it was being read"));
    assert!(message(5).contains("process 5 ended while it was being read"));
    fs::remove_dir_all(&folder).expect("there");
}

/// Returns a text with a few characters replaced, removed or inserted, or truncated.
fn damaged(text: String) -> impl Strategy<Value = String> {
    let length = text.chars().count();
    let pieces = prop_oneof![
        "[ -~\n]{0,6}".boxed(),
        Just("18446744073709551615".to_owned()).boxed(),
        Just("é".to_owned()).boxed(),
        Just("ffffffffffffffff-0 rwxp 0 0:0 0 [x".to_owned()).boxed(),
    ];
    let edit = (0..length, 0..30usize, pieces);
    (prop::collection::vec(edit, 1..20), 0..2 * length).prop_map(move |(edits, end)| {
        let mut chars: Vec<char> = text.chars().collect();
        for (at, gone, put) in edits {
            let at = at.min(chars.len());
            let to = (at + gone).min(chars.len());
            chars.splice(at..to, put.chars());
        }
        chars.truncate(end.max(1));
        chars.into_iter().collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn damaged_process_files_give_the_remaining_values(
        smaps in damaged(text("asked/smaps")),
        numa_maps in damaged(text("asked/numa_maps")),
        status in damaged(text("asked/status")),
    ) {
        let texts = ProcessTexts { smaps, numa_maps: Some(numa_maps), status, exe: Some("/usr/bin/python3.11".to_owned()) };
        let process = Process::parse(1, &texts);
        prop_assert!(about_process(&host(), &process).iter().all(|sentence| sentence.len() < 400));
        prop_assert!(process.mappings.iter().all(|mapping| mapping.start <= mapping.end));
        prop_assert!(process.notes.len() <= 12);
    }

    #[test]
    fn damaged_host_files_give_the_remaining_values(number in any::<prop::sample::Index>(), put in "[ -~\\n]{0,20}|é|184467440737095516150") {
        let mut files = read::files(&captured());
        let path = files.keys().nth(number.index(files.len())).expect("one of them").clone();
        files.insert(path.replace("2048kB", &put), put.clone());
        files.insert(path, put);
        let host = Host::parse(None, &files);
        let found = [about_host(&host), about_process(&host, &process("not-asked"))].concat();
        prop_assert!(found.iter().all(|sentence| sentence.len() < 400));
    }
}
