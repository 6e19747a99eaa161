//! The rows of each batch.

use std::collections::VecDeque;

use parquet::arrow::arrow_reader::{RowSelection, RowSelector};

/// Which rows the batches that are still to come have.
#[derive(Debug)]
pub(super) struct Batches {
    batch_size: usize,
    /// What is left of the selection; `None` for all rows.
    selectors: Option<VecDeque<RowSelector>>,
}

impl Batches {
    pub(super) fn new(batch_size: usize, selection: Option<&RowSelection>) -> Self {
        Self {
            batch_size,
            selectors: selection.cloned().map(VecDeque::from),
        }
    }

    /// The steps to the end of the next batch; none where no row is left to be read.
    pub(super) fn next(&mut self) -> Vec<RowSelector> {
        if self.batch_size == 0 {
            return Vec::new();
        }
        let Some(selectors) = &mut self.selectors else {
            return vec![RowSelector::select(self.batch_size)];
        };
        let mut steps = Vec::new();
        let mut wanted = self.batch_size;
        while wanted > 0
            && let Some(next) = selectors.pop_front()
        {
            if next.skip || next.row_count <= wanted {
                wanted -= if next.skip { 0 } else { next.row_count };
                steps.push(next);
            } else {
                selectors.push_front(RowSelector::select(next.row_count - wanted));
                steps.push(RowSelector::select(wanted));
                wanted = 0;
            }
        }
        // What is passed over behind the last row need not be.
        while steps
            .last()
            .is_some_and(|step| step.skip || step.row_count == 0)
        {
            steps.pop();
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(batch_size: usize, selection: &[RowSelector]) -> Vec<Vec<RowSelector>> {
        let selection = RowSelection::from(selection.to_vec());
        let mut batches = Batches::new(batch_size, Some(&selection));
        let next = std::iter::from_fn(|| Some(batches.next()).filter(|steps| !steps.is_empty()));
        next.collect()
    }

    #[test]
    fn batches_are_full_but_for_the_last() {
        let (skip, select) = (RowSelector::skip, RowSelector::select);
        assert_eq!(
            all(4, &[skip(3), select(6), skip(1), select(3), skip(9)]),
            [
                vec![skip(3), select(4)],
                vec![select(2), skip(1), select(2)],
                vec![select(1)],
            ]
        );
        assert!(all(4, &[skip(3)]).is_empty());
        assert!(all(0, &[select(3)]).is_empty());
    }

    #[test]
    fn without_a_selection_each_batch_asks_for_all() {
        let mut batches = Batches::new(3, None);
        assert_eq!(batches.next(), [RowSelector::select(3)]);
        assert_eq!(batches.next(), [RowSelector::select(3)]);
    }
}
