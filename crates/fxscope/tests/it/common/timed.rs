//! Timed runs, and the threads in their JSON.

use std::path::Path;

use serde_json::Value;

use super::{json, output};

/// Flags for C programs with threads, and with OpenMP by libgomp.
pub const THREADS: [&str; 4] = ["-O2", "-mcpu=a64fx", "-static", "-pthread"];
pub const OPENMP: [&str; 4] = ["-O2", "-mcpu=a64fx", "-static", "-fopenmp"];

/// A run: what the program printed, and the JSON.
#[derive(Debug, PartialEq)]
pub struct Run {
    pub text: String,
    pub json: Value,
}

impl Run {
    /// Returns the rows of a region by thread: CPU and one event.
    pub fn rows(&self, region: &str, event: &str) -> Vec<(u64, u64)> {
        let all = self.json["regions"].as_array().expect("regions");
        let region = all.iter().find(|r| r["name"] == region).unwrap_or_else(|| panic!("no region {region}"));
        let rows = region["threads"].as_array().expect("rows of threads");
        rows.iter().map(|row| (row["cpu"].as_u64().unwrap(), row["events"][event].as_u64().unwrap())).collect()
    }

    /// Returns one event of each thread in a region.
    pub fn events(&self, region: &str, event: &str) -> Vec<u64> {
        self.rows(region, event).into_iter().map(|row| row.1).collect()
    }

    /// Returns the CPUs of the threads at the end.
    pub fn cpus(&self) -> Vec<u64> {
        self.rows("all", "CPU_CYCLES").into_iter().map(|row| row.0).collect()
    }

    pub fn cycles(&self) -> f64 {
        self.json["simulated"]["cycles"].as_f64().expect("cycles")
    }

    /// Removes everything that depends on the host.
    pub fn without_host(mut self) -> Run {
        self.json.as_object_mut().expect("an object").remove("host");
        self
    }
}

/// Runs a program, which must succeed, with options and arguments separated by blanks.
pub fn run(folder: &Path, options: &str, program: &str, arguments: &str) -> Run {
    let result = folder.join("result.json");
    let result = result.to_str().expect("UTF-8 path");
    let mut args = vec!["run", "--quiet", "--json", result];
    args.extend(options.split_whitespace().chain(["--", program]).chain(arguments.split_whitespace()));
    let output = output(folder, &args);
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    Run { text, json: json(&std::fs::read(result).expect("written")) }
}
