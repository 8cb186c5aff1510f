//! Ascending row numbers as runs: first row and count, in turn. Places that are looked for together stand together in a
//! sorted table, so that a unit needs few runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Ascending row numbers of a table; in JSON a flat list of first row and count, in turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<u32>", into = "Vec<u32>")]
#[schemars(with = "Vec<u32>")]
pub struct Rows(Vec<(u32, u32)>);

impl Rows {
    /// The runs of `numbers`, which ascend strictly.
    #[must_use]
    pub fn of(numbers: impl IntoIterator<Item = u32>) -> Self {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for number in numbers {
            match runs.last_mut() {
                Some((first, count)) if *first + *count == number => *count += 1,
                _ => runs.push((number, 1)),
            }
        }
        Self(runs)
    }

    /// The items of `table` that the rows name, in order; none if one lies beyond it.
    #[must_use]
    pub fn of_table<'a, T>(&self, table: &'a [T]) -> Option<Vec<&'a T>> {
        let mut items = Vec::new();
        for (first, count) in &self.0 {
            let first = usize::try_from(*first).ok()?;
            items.extend(table.get(first..first.checked_add(usize::try_from(*count).ok()?)?)?);
        }
        Some(items)
    }
}

impl TryFrom<Vec<u32>> for Rows {
    type Error = String;

    fn try_from(flat: Vec<u32>) -> Result<Self, String> {
        let refused = || "rows are pairs of first row and count, ascending, apart, and not empty".to_owned();
        let (pairs, rest) = flat.as_chunks::<2>();
        let (mut runs, mut next) = (Vec::new(), None);
        for &[first, count] in pairs {
            // Two runs that touch are one: each list of rows has one form.
            if count == 0 || next.is_some_and(|next| first <= next) {
                return Err(refused());
            }
            next = Some(first.checked_add(count).ok_or_else(refused)?);
            runs.push((first, count));
        }
        if rest.is_empty() { Ok(Self(runs)) } else { Err(refused()) }
    }
}

impl From<Rows> for Vec<u32> {
    fn from(rows: Rows) -> Self {
        rows.0.into_iter().flat_map(|(first, count)| [first, count]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_list_of_rows_has_one_form() {
        for refused in [vec![1], vec![1, 0], vec![1, 2, 3, 1], vec![5, 1, 2, 1], vec![u32::MAX, 1]] {
            assert!(Rows::try_from(refused.clone()).is_err(), "{refused:?}");
        }
        assert_eq!(Vec::from(Rows::of([0, 1, 2, 5])), [0, 3, 5, 1]);
        assert_eq!(Rows::of([2]).of_table(&[1, 2]), None);
    }

    proptest! {
        #[test]
        fn packing_loses_nothing(numbers in prop::collection::btree_set(0u32..300, 0..100)) {
            let rows = Rows::of(numbers.iter().copied());
            let flat = Vec::from(rows.clone());
            prop_assert_eq!(Rows::try_from(flat), Ok(rows.clone()));
            let table: Vec<u32> = (0..300).collect();
            let found: Vec<u32> = rows.of_table(&table).unwrap().into_iter().copied().collect();
            prop_assert_eq!(found, numbers.into_iter().collect::<Vec<_>>());
        }
    }
}
