//! What the commands of each page need, which of their sizes are smaller in the test, and which cannot run.

/// A page of `docs`.
#[derive(Clone, Copy)]
pub struct Page {
    /// Its path without `docs/` and `.md`.
    pub name: &'static str,
    /// Files of the page: name, and how the block of code with their text begins.
    pub files: &'static [(&'static str, &'static str)],
    /// Commands that come before those of the page.
    pub before: &'static str,
    /// What is written, and what runs instead.
    pub smaller: &'static [(&'static str, &'static str)],
    /// How commands begin that do not run, and why.
    pub left_out: &'static [(&'static str, &'static str)],
    /// It takes many seconds.
    pub slow: bool,
}

/// A page all of whose commands run as they are.
pub const fn page(name: &'static str) -> Page {
    Page { name, files: &[], before: "", smaller: &[], left_out: &[], slow: false }
}

/// The program of readers: its source, and the names that pages give it.
pub const SOURCE: &str = include_str!("../../programs/app.c");
pub const PROGRAMS: [&str; 5] = ["app", "program", "stream", "branches", "three"];
/// Changes in all pages.
pub const EVERYWHERE: [(&str, &str); 2] = [("-- PROGRAM [ARGS]", "-- ./app"), ("-- PROGRAM", "-- ./app")];

/// A record of that program.
const RECORD: &str = "fxscope run -q -o run.fxr -- ./app";
const SYSROOT: &str = "needs arm64 packages of Debian, which make programs and make mpi fetch";
const PERF: &str = "needs an A64FX and perf; the test collect counts through a perf of its own";
const PACKAGES: &str = "installs packages of a registry; make wheel-test does";
const SLURM: &str = "needs Slurm; make slurm-test";
const FORM: &str = "the form of the command, not one of them";
const EXPERIMENT: &str = "minutes; the test pages_experiment runs small ones";
const MEASURES: &str = "measures this host, or needs that measurement; the tests jitter_measure and make jitter-test";

pub const PAGES: &[Page] = &[
    Page { before: "fxscope run -q -o app.fxr -- ./app", slow: true, ..page("advise") },
    Page { smaller: &[("dgemm-tile.elf", "dgemm-tile.elf passes=2")], ..page("annotate") },
    Page {
        before: r#"echo 'extends = "a64fx"' >keys.toml"#,
        smaller: &[("repeat=1", "repeat=1 only=l1-hit")],
        left_out: &[("fxscope calibrate fit", "searches for minutes; make calibrate-test")],
        ..page("calibrate")
    },
    Page { before: RECORD, ..page("calls") },
    Page {
        smaller: &[("--every 10min", "--every 20000"), ("fxscope resume kept", "fxscope resume kept --at 2")],
        ..page("checkpoints")
    },
    Page { before: RECORD, smaller: &[("| jq '.[0] | {tool, machine, machine_hash, settings}'", "")], ..page("cite") },
    Page { left_out: &[("pip install", PACKAGES), ("python -m", SLURM)], ..page("clusters") },
    Page {
        before: "fxscope run -q -o run.fxr -- ./app
                 echo 1000,,cycles,5,100.00,, >pass1.csv
                 echo 1000,,instructions,5,100.00,, >pass2.csv",
        left_out: &[("fxscope collect", PERF)],
        ..page("collect")
    },
    Page {
        left_out: &[
            ("programs/small.sh", "builds programs and fetches Debian's: minutes"),
            ("fxscope latency check", "simulates 70 programs: minutes"),
            ("fxscope pages check", "simulates 50 programs: minutes"),
            ("fxscope validate full", "simulates all rows: minutes"),
        ],
        smaller: &[("jitter linpack", "jitter linpack --nodes 64")],
        ..page("evidence")
    },
    Page {
        left_out: &[("fxscope guide --all", "reruns all experiments: minutes; the tests of guide run some")],
        smaller: &[("guide prefetch.l1-distance", "guide sfi.mask"), ("guide zfill", "guide sfi")],
        slow: true,
        ..page("guide")
    },
    Page {
        before: "echo 1000,,cycles,5,100.00,, >pass1.csv
                 echo 1000,,instructions,5,100.00,, >pass2.csv
                 cp testdata/import/likwid/two-groups.csv likwid.csv",
        ..page("import")
    },
    Page {
        before: "mkdir -p .local/share/bash-completion/completions .zfunc .config/fish/completions",
        smaller: &[("/usr/share/fxscope/kernels", "kernels/prebuilt")],
        ..page("install")
    },
    Page {
        left_out: &[
            ("fxscope jitter measure", MEASURES),
            ("fxscope jitter fit", MEASURES),
            ("fxscope jitter simulate", MEASURES),
        ],
        ..page("jitter")
    },
    Page {
        before: "aarch64-linux-gnu-gcc -O2 -static crates/fxscope/tests/programs/ranks.c -o ranks",
        smaller: &[
            ("--phases 1000", "--phases 20 --nodes 1,64"),
            ("simulate --model linux-250hz", "simulate --phases 20 --nodes 1,64 --model linux-250hz"),
            ("1,64,512,3008", "1,64 --phases 20"),
            ("1,64,1024,100000", "1,64"),
            ("jitter linpack", "jitter linpack --nodes 64"),
        ],
        left_out: &[("cargo run", "builds fxscope once more, optimised")],
        ..page("jitter-scale")
    },
    Page { before: RECORD, smaller: &[("| jq '.[0].regions[0].tables.A02.cmgs[0]'", "")], ..page("json") },
    Page {
        before: RECORD,
        smaller: &[("chase.elf 16777216 20000", "chase.elf 1048576 500")],
        left_out: &[
            ("fxscope latency check --plan", "simulates hundreds of programs: minutes"),
            ("fxscope latency collect", PERF),
        ],
        slow: true,
        ..page("latency-lab")
    },
    Page { left_out: &[("fxscope work", "needs a run at the same time; the test spool starts both")], ..page("jobs") },
    Page { before: RECORD, ..page("loops") },
    Page { files: &[("slow.toml", "extends = \"a64fx\"\n\n[memory]")], ..page("machine-files") },
    Page { left_out: &[("fxscope run --ranks", SYSROOT), ("fxscope run --sysroot", SYSROOT)], ..page("mpi") },
    Page {
        files: &[("mine.toml", "group = \"mine\"")],
        before: "fxscope run -q -o run.fxr -- ./app
                 echo 'subject = \"mine\"' >rule.toml",
        ..page("own-metrics")
    },
    Page {
        smaller: &[("n=5592384", "n=131072"), ("chase.elf;", "chase.elf 1048576 500;")],
        left_out: &[
            ("python3 -c", "a process of this host, to be looked at for a minute"),
            ("fxscope pages host --pid", "looks at that process; the test pages_host has one"),
            ("fxscope pages host --check", "times a program of this host; the test pages_walks has one"),
        ],
        slow: true,
        ..page("pages")
    },
    Page { smaller: &[("n=5592384", "n=131072"), ("n=1397760", "n=131072")], slow: true, ..page("pages-advise") },
    Page { left_out: &[("fxscope pages experiment", EXPERIMENT)], ..page("pages-blocks") },
    Page { left_out: &[("fxscope pages experiment ", EXPERIMENT)], ..page("pages-experiments") },
    Page { smaller: &[("2G", "20000"), ("500M", "10000")], ..page("parts") },
    Page {
        before: "fxscope run -q -o normal.fxr -- ./app",
        left_out: &[("fxscope validate power", "a minute; make validate runs all rows")],
        slow: true,
        ..page("power")
    },
    Page { smaller: &[("triad-mem.elf", "triad-mem.elf n=65536 passes=1")], ..page("prefetch") },
    Page { left_out: &[("pip install", PACKAGES)], ..page("python") },
    Page { before: "printf 'print *, 1\\nend\\n' >program.f90", ..page("regions") },
    Page {
        smaller: &[("n=1048512", "n=131008"), ("n=4193280", "n=524160"), ("passes=300", "passes=20")],
        left_out: &[("fxscope report FILE.fxr", FORM), ("fxscope compare A.fxr", FORM)],
        slow: true,
        ..page("report")
    },
    Page {
        left_out: &[("fxscope run --sysroot", SYSROOT), ("fxscope run --mode functional --sysroot", SYSROOT)],
        ..page("running")
    },
    Page {
        left_out: &[
            ("fxscope run --sample -- lulesh", "LULESH is not in the tree"),
            ("CLASS=W OPTIONS=--sample programs/npb.sh", "fetches the NAS benchmarks and runs for minutes"),
            ("CLASS=A ONLY=sp", "fetches the NAS benchmarks and runs for minutes"),
            ("cargo run --release -p xtask -- sampling", "LULESH is not in the tree"),
        ],
        ..page("sampling")
    },
    Page {
        files: &[("example.c", "#include <stdio.h>"), ("example.f90", "program example")],
        // The page shows that it is refused.
        smaller: &[("fxscope run --sector L2=15", "! fxscope run --sector L2=15")],
        slow: true,
        ..page("sector-cache")
    },
    Page {
        files: &[("plan.toml", "title = \"Bandwidth")],
        before: "cp kernels/prebuilt/triad-threads.elf .",
        smaller: &[("n=1048512", "n=131008")],
        left_out: &[("python -m", SLURM)],
        slow: true,
        ..page("sweep")
    },
    Page {
        files: &[("axpy.c", "#include <stdio.h>")],
        before: "aarch64-linux-gnu-gcc -O3 -mcpu=a64fx -static -fopenmp -I. axpy.c -o axpy
                 cp axpy sum",
        smaller: &[
            ("threads=N OPTIONS", "threads=2 n=65536 passes=1"),
            ("rounds=1000", "rounds=20"),
            ("rounds=5000", "rounds=50"),
        ],
        left_out: &[("jq", "looks into JSON that the command before wrote")],
        ..page("threads")
    },
    Page { left_out: &[("fxscope collect", PERF)], ..page("tutorials/counters") },
    Page {
        smaller: &[("public-likwid", "access-0009")],
        left_out: &[
            ("fxscope validate  ", "half a minute; make test runs it"),
            ("fxscope validate full", "minutes; make validate"),
        ],
        ..page("validation")
    },
    Page {
        smaller: &[
            ("OPTIONS", "--set memory.added_ns=100"),
            ("n=1048512 passes=4", "n=65536 passes=1"),
            ("8388608 20000", "1048576 500"),
        ],
        ..page("what-if")
    },
    Page { smaller: &[("n=1048512", "n=65536")], ..page("zfill") },
];
