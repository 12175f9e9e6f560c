//! Rules for what somebody writes.

/// Whether a value keeps a rule. The error is the rule, and reads on behind the name of the value:
/// "must be https".
pub type RuleKept = Result<(), &'static str>;
