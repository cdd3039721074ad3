"""Operations that turn bytes into tensors, and back."""
