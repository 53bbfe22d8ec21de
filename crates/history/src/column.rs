//! Columns of numbers that take as much memory as most of them need.

/// Numbers of two sizes: if all of a column fit into the narrow one, that is what they take.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Column<N, W> {
    Narrow(Vec<N>),
    Wide(Vec<W>),
}

impl<N, W> Default for Column<N, W> {
    fn default() -> Self {
        Self::Narrow(Vec::new())
    }
}

impl<N: Copy + TryFrom<W>, W: Copy + From<N>> Column<N, W> {
    /// The number at an index that is within the column.
    pub(crate) fn get(&self, index: usize) -> W {
        match self {
            Self::Narrow(numbers) => numbers[index].into(),
            Self::Wide(numbers) => numbers[index],
        }
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = W> {
        (0..self.len()).map(|index| self.get(index))
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Narrow(numbers) => numbers.len(),
            Self::Wide(numbers) => numbers.len(),
        }
    }

    /// Size in memory, in bytes.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Narrow(numbers) => size_of_val(&numbers[..]),
            Self::Wide(numbers) => size_of_val(&numbers[..]),
        }
    }
}

impl<N: Copy + TryFrom<W>, W: Copy + From<N>> FromIterator<W> for Column<N, W> {
    fn from_iter<I: IntoIterator<Item = W>>(numbers: I) -> Self {
        let mut numbers = numbers.into_iter();
        let mut narrow: Vec<N> = Vec::with_capacity(numbers.size_hint().0);
        while let Some(number) = numbers.next() {
            match N::try_from(number) {
                Ok(number) => narrow.push(number),
                Err(_) => {
                    let before = narrow.into_iter().map(W::from);
                    return Self::Wide(before.chain([number]).chain(numbers).collect());
                }
            }
        }
        Self::Narrow(narrow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_as_wide_as_its_widest_number() {
        let column = |numbers: &[u32]| numbers.iter().copied().collect::<Column<u16, u32>>();
        for (numbers, weight) in [(&[][..], 0), (&[1, 65_535, 0], 6), (&[1, 65_536, 0], 12), (&[u32::MAX], 4)] {
            let column = column(numbers);
            assert_eq!(column.weight(), weight, "{numbers:?}");
            assert_eq!(column.len(), numbers.len());
            assert_eq!(column.iter().collect::<Vec<_>>(), numbers);
        }
    }
}
