"""Operations on queues, staging areas, barriers and accumulators."""
