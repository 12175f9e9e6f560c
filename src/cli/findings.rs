//! Findings as operators and programs read them.

use serde_json::{Value, json};

use crate::protocol::words::finding::{Finding, Verdict};

use super::failure::Failure;
use super::output::printable;

pub(super) fn text(findings: &[Finding]) -> String {
    let line = |finding: &Finding| format!("{:<5} {}", finding.verdict.as_str(), printable(&finding.text));
    findings.iter().map(line).collect::<Vec<_>>().join("\n")
}

pub(super) fn json(findings: &[Finding]) -> Vec<Value> {
    findings.iter().map(|finding| json!({"verdict": finding.verdict.as_str(), "text": finding.text})).collect()
}

pub(super) fn require_working(name: &str, findings: &[Finding]) -> Result<(), Failure> {
    if findings.iter().any(|finding| finding.verdict == Verdict::Broken) {
        return Err(Failure::Refused(format!("{name} cannot work as it is")));
    }
    Ok(())
}
