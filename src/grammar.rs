//! stub
use std::collections::BTreeSet;
pub struct Command {
    argv: Vec<String>,
}
pub struct Refusal {
    pub token: String,
}
pub fn parse(argv: &[String]) -> Command {
    Command { argv: argv.to_vec() }
}
impl Command {
    pub fn without_defines(&self, names: &BTreeSet<String>) -> Vec<String> {
        self.argv
            .iter()
            .filter(|t| !names.iter().any(|n| t.starts_with(&format!("-D{n}="))))
            .cloned()
            .collect()
    }
    pub fn refusals(&self) -> Vec<Refusal> {
        vec![]
    }
    pub fn has_debug_info(&self) -> bool {
        false
    }
}
pub fn expand(argv: &[String], _r: &mut dyn FnMut(&str) -> Option<Vec<u8>>) -> Result<Vec<String>, Refusal> {
    Ok(argv.to_vec())
}
