/// Requested page of a list. Numbers begin at 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageRequest {
    number: usize,
    size: usize,
}

impl PageRequest {
    pub const DEFAULT_SIZE: usize = 20;
    pub const LARGEST_SIZE: usize = 100;

    /// A size beyond the largest means the largest; zero of either means one.
    pub fn new(number: usize, size: usize) -> Self {
        Self { number: number.max(1), size: size.clamp(1, Self::LARGEST_SIZE) }
    }

    pub fn number(&self) -> usize {
        self.number
    }

    pub fn size(&self) -> usize {
        self.size
    }

    /// Number of items before the page.
    pub fn skip(&self) -> usize {
        (self.number - 1).saturating_mul(self.size)
    }
}

impl Default for PageRequest {
    fn default() -> Self {
        Self::new(1, Self::DEFAULT_SIZE)
    }
}

/// One page of a list. A page beyond the end is empty and still knows the total.
#[derive(Clone, Debug)]
pub struct Listed<T> {
    pub items: Vec<T>,
    pub page: PageRequest,
    pub total: usize,
}

impl<T> Listed<T> {
    /// Takes the page out of all items.
    pub fn from_all(all: impl IntoIterator<Item = T>, page: PageRequest) -> Self {
        let mut total = 0;
        let mut items = Vec::new();
        for (position, item) in all.into_iter().enumerate() {
            total += 1;
            if position >= page.skip() && items.len() < page.size {
                items.push(item);
            }
        }
        Self { items, page, total }
    }

    /// Takes the page out of items of which it is known how many there are: those behind it are not looked at.
    pub fn from_sorted(all: impl IntoIterator<Item = T>, total: usize, page: PageRequest) -> Self {
        Self { items: all.into_iter().skip(page.skip()).take(page.size).collect(), page, total }
    }

    pub fn map<U>(self, change: impl FnMut(T) -> U) -> Listed<U> {
        Listed { items: self.items.into_iter().map(change).collect(), page: self.page, total: self.total }
    }

    pub fn total_pages(&self) -> usize {
        self.total.div_ceil(self.page.size).max(1)
    }
}

impl<T: Clone> Listed<&T> {
    /// The items of the page, and none of those before and behind it.
    pub fn cloned(self) -> Listed<T> {
        self.map(T::clone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_a_part_that_knows_the_whole() {
        for (number, size, items, total_pages) in [
            (1, 3, vec![1, 2, 3], 3),
            (3, 3, vec![7], 3),
            (999, 100, vec![], 1),
            (0, 0, vec![1], 7),
            (1, usize::MAX, (1..=7).collect(), 1),
            (usize::MAX, 100, vec![], 1),
        ] {
            let listed = Listed::from_all(1..=7, PageRequest::new(number, size));
            assert_eq!((listed.items.clone(), listed.total, listed.total_pages()), (items, 7, total_pages));
        }
        assert_eq!(Listed::from_all(Vec::<u8>::new(), PageRequest::default()).total_pages(), 1);
    }
}
