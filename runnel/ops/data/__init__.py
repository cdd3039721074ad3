"""Operations on datasets and iterators."""
