//! `fxscope advise`: the cures that it finds for programs with one known illness, and their gain compared with that of the cured program.

use crate::common;

use std::path::Path;

use common::timed::OPENMP;
use common::{compile, failure, json, kernel, output};
use serde_json::Value;

/// Returns what `fxscope advise` says, with these arguments.
fn advise(folder: &Path, args: &[&str]) -> Value {
    let output = output(folder, &[&["advise", "--quiet", "--json", "advice.json"], args].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    json(&std::fs::read(folder.join("advice.json")).expect("written"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

/// What is said about a region.
struct Found {
    seconds: f64,
    /// The causes in its verdict.
    limits: Vec<Value>,
    /// The name of the best remedy; `null` if there is none.
    best: Value,
    /// Name, options and gain of each remedy.
    gains: Vec<(String, Value, f64)>,
}

impl Found {
    fn of(advice: &Value, region: &str) -> Found {
        let regions = list(&advice["regions"]);
        let place = regions.iter().position(|found| found["name"] == region).unwrap_or_else(|| panic!("{advice}"));
        let ranked = |tried: &&Value| tried["trade_off"] == false;
        let gain = |tried: &Value| {
            let gain = tried["regions"][place]["gain"].as_f64()?;
            Some((tried["name"].as_str()?.to_owned(), tried["options"].clone(), gain))
        };
        Found {
            seconds: number(&regions[place]["seconds"]),
            limits: list(&regions[place]["verdict"]["limits"]).to_vec(),
            best: regions[place]["best"].clone(),
            gains: list(&advice["tried"]).iter().filter(ranked).filter_map(gain).collect(),
        }
    }

    /// The gain of the remedy with these options.
    fn gain(&self, options: &[&str]) -> f64 {
        let found = self.gains.iter().find(|(_, known, _)| *known == serde_json::json!(options));
        found.unwrap_or_else(|| panic!("{options:?}: {:?}", self.gains)).2
    }

    /// The gain of the best remedy.
    fn best_gain(&self) -> Option<f64> {
        self.gains.iter().find(|(name, ..)| self.best == name.as_str()).map(|(_, _, gain)| *gain)
    }
}

#[test]
fn sampled_runs_and_parts_are_advised_on() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = kernel("triad-mem.elf");
    let options = ["--sample", "window=2000,period=20000", "--", &program, "n=200000", "passes=2"];
    let advice = advise(folder.path(), &options);
    assert!(!list(&advice["tried"]).is_empty(), "{advice}");
    // What is not timed has no accesses to look at.
    assert!(list(&advice["tried"]).iter().all(|tried| tried["kind"] != "sector cache"), "{advice}");
    assert!(list(&advice["tried"]).iter().all(|tried| tried["noise"].is_boolean()), "{advice}");
}

#[test]
fn a_region_that_no_remedy_helps_has_none() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let advice = advise(folder.path(), &["--", &kernel("ill.elf"), "illness=division"]);
    let found = Found::of(&advice, "division");
    assert_eq!((found.best.clone(), found.best_gain()), (Value::Null, None), "{advice}");
    assert!(found.gains.iter().all(|(.., gain)| *gain < 0.01), "{advice}");
    // What helps is another program.
    assert!(advice["advice"].as_str().is_some_and(|text| text.contains("Multiply by the reciprocal")), "{advice}");
}

mod slow {
    use super::*;

    /// A program on two CMGs whose data are on the first one's node: cores of one CMG, or memory of the second, cure it.
    #[test]
    #[ignore = "make slow-test runs it"]
    fn remote_memory_is_cured_by_cores_of_one_cmg_or_by_memory_of_the_other() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let program = kernel("ill.elf");
        let found = Found::of(&advise(folder.path(), &["--cpus", "12,24", "--", &program, "illness=remote"]), "remote");
        let gains = [found.gain(&["--cpus", "12-13"]), found.gain(&["--membind", "5"])];
        // A request over the ring takes 128 cycles more than the 256 of the own memory.
        assert!(gains.iter().all(|gain| (gain - 128.0 / 384.0).abs() < 0.03), "{gains:?}");
        assert!(found.best_gain().is_some_and(|best| gains.iter().all(|gain| best >= *gain)), "{:?}", found.gains);
    }

    /// Two threads that add to words of one line: with one thread it does not move.
    #[test]
    #[ignore = "make slow-test runs it"]
    fn programs_with_openmp_are_tried_with_other_numbers_of_threads() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let source = "#include <omp.h>\n\
                      static volatile long words[64];\n\
                      int main(void) {\n\
                      #pragma omp parallel\n\
                      for (int i = 0; i < 20000 / omp_get_num_threads(); i++)\n\
                          words[omp_get_thread_num()]++;\n\
                      return 0;\n\
                      }\n";
        let program = compile(folder.path(), "sharing", &OPENMP, source);
        let advice = advise(folder.path(), &["--cpus", "12-13", "-e", "OMP_NUM_THREADS=2", "--", &program]);
        let found = Found::of(&advice, "all");
        assert_eq!(found.limits[0]["rule"], "line_sharing", "{advice}");
        assert!(found.gain(&["-e", "OMP_NUM_THREADS=1"]) > 0.3, "{advice}");
    }

    /// An illness of `kernels/ill.c`, and what cures it.
    struct Illness {
        name: &'static str,
        rule: &'static str,
        /// Further options of the run.
        options: &'static [&'static str],
        /// Whether a remedy cures it without a change of the program.
        has_remedy: bool,
    }

    const fn changed(name: &'static str, rule: &'static str) -> Illness {
        Illness { name, rule, options: &[], has_remedy: false }
    }

    const fn cured(name: &'static str, rule: &'static str, options: &'static [&'static str]) -> Illness {
        Illness { name, rule, options, has_remedy: true }
    }

    const ILLNESSES: [Illness; 17] = [
        cured("tlb", "tlb_misses", &[]),
        cured("small-pages", "tlb_misses", &[]),
        cured("first-touch", "one_memory", &["--cpus", "12-15,24-27"]),
        cured("remote", "remote_memory", &["--cpus", "12,24"]),
        changed("stride", "sparse_lines"),
        changed("gather", "gathers"),
        changed("aliasing", "aliasing"),
        changed("interlock", "store_fetch_interlock"),
        changed("streams", "many_streams"),
        changed("denormals", "subnormals"),
        changed("division", "divisions"),
        changed("scalar", "scalar_code"),
        changed("chain", "fp_latency"),
        changed("branches", "mispredictions"),
        changed("false-sharing", "line_sharing"),
        changed("imbalance", "imbalance"),
        changed("lock", "locks"),
    ];

    /// Largest difference of a gain from that of the cured program, as a share of the latter.
    const TOLERANCE: f64 = 0.1;

    /// The time of the program without the illness.
    fn seconds_of_cured(folder: &Path, words: &[&str], region: &str) -> f64 {
        let ran = output(folder, &[&["run", "-q", "--json", "cured.json"], words, &["ill=0"]].concat());
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        let run = json(&std::fs::read(folder.join("cured.json")).expect("written"));
        let found = list(&run["regions"]).iter().find(|found| found["name"] == region).expect("marked");
        number(&found["metrics"]["seconds"])
    }

    /// The table of docs/advise.md, which `--nocapture` shows.
    #[test]
    #[ignore = "make slow-test runs it"]
    fn gains_are_within_ten_percent_of_those_of_cured_programs() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let program = kernel("ill.elf");
        let mut wrong = Vec::new();
        println!("| Illness | Rule | Predicted | Simulated | Cured program | Remedy |\n|---|---|---:|---:|---:|---|");
        for Illness { name, rule, options, has_remedy } in ILLNESSES {
            let illness = format!("illness={name}");
            let words = [options, &["--", &program, &illness]].concat();
            let ill = Found::of(&advise(folder.path(), &[&words[..], &["ill=1"]].concat()), name);
            let gain = 1.0 - seconds_of_cured(folder.path(), &words, name) / ill.seconds;
            let limit = ill.limits.iter().find(|limit| limit["rule"] == rule).expect(name);
            let predicted = number(&limit["gain"]);
            let simulated = ill.best_gain().filter(|_| has_remedy);
            let percent = |gain: f64| format!("{:.1} %", 100.0 * gain);
            println!(
                "| {name} | {rule} | {} | {} | {} | {} |",
                percent(predicted),
                simulated.map_or(String::new(), percent),
                percent(gain),
                simulated.and(ill.best.as_str()).unwrap_or(""),
            );
            let found = if has_remedy { simulated.unwrap_or(0.0) } else { predicted };
            if (found - gain).abs() > TOLERANCE * gain {
                wrong.push(format!("{name}: {found} for {gain}"));
            }
        }
        assert!(wrong.is_empty(), "{wrong:?}");
    }

    /// A parent and its child touch more pages of 64 KiB than the TLB holds; larger ones also fault less often.
    #[test]
    #[ignore = "make slow-test runs it"]
    fn page_sizes_are_found_for_all_processes() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let source = "#include <stdlib.h>\n\
                      #include <sys/wait.h>\n\
                      #include <unistd.h>\n\
                      enum { PAGE = 65536, PAGES = 1400 };\n\
                      int main(void) {\n\
                          volatile char *block = malloc((size_t)PAGE * PAGES);\n\
                          pid_t child = fork();\n\
                          for (int i = 0; i < 20 * PAGES; i++)\n\
                              block[(size_t)(i % PAGES) * PAGE + i % 256 * 256]++;\n\
                          int status = 0;\n\
                          if (child > 0)\n\
                              wait(&status);\n\
                          return status != 0;\n\
                      }\n";
        let program = compile(folder.path(), "pages", &["-O2", "-static"], source);
        let advice = advise(folder.path(), &["-e", "XOS_MMM_L_HPAGE_TYPE=none", "--", &program]);
        let found = Found::of(&advice, "all");
        assert!(
            found.best.as_str().is_some_and(|best| best.starts_with("pages ") && best.contains("heap=2MiB")),
            "{advice}"
        );
        let gain = found.best_gain().expect("a gain");
        assert!(gain > 0.1, "{advice}");
        // The same run by hand.
        let options = &list(&advice["tried"])[0]["options"];
        let options: Vec<&str> = list(options).iter().filter_map(Value::as_str).collect();
        let words =
            [&["run", "-q", "--json", "run.json", "-e", "XOS_MMM_L_HPAGE_TYPE=none"], &options[..], &["--", &program]];
        assert!(output(folder.path(), &words.concat()).status.success());
        let run = json(&std::fs::read(folder.path().join("run.json")).expect("written"));
        let seconds = number(&run["simulated"]["seconds"]);
        assert!((1.0 - seconds / number(&advice["seconds"]) - gain).abs() < 1e-9, "{seconds} {advice}");
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn a_record_is_run_again_and_regions_are_judged_each() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let program = kernel("ill.elf");
        let ran = output(folder.path(), &["run", "-q", "-o", "a.fxr", "--", &program, "illness=streams"]);
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        let advice = advise(folder.path(), &["a.fxr"]);
        let regions = list(&advice["regions"]);
        let names: Vec<&Value> = regions.iter().map(|region| &region["name"]).collect();
        assert_eq!(names, ["all", "streams"]);
        assert!(number(&regions[1]["share"]) > 0.05 && number(&regions[1]["share"]) < 1.0, "{advice}");
        for tried in list(&advice["tried"]) {
            let of_regions = list(&tried["regions"]);
            assert_eq!(of_regions.len(), 2);
            // The whole run's time with a remedy follows from its gain.
            let gain = 1.0 - number(&tried["seconds"]) / number(&advice["seconds"]);
            assert!((gain - number(&of_regions[0]["gain"])).abs() < 1e-9, "{tried}");
        }
        let (status, message) = failure(folder.path(), &["advise", "a.fxr", "--region", "none"]);
        assert!(status != 0 && message.contains("none"), "{message}");
        let (_, message) = failure(folder.path(), &["advise", &program]);
        assert!(message.contains("a program comes after --: fxscope advise -- PROGRAM"), "{message}");
    }
}
