"""Searches for likely sequences whose hypotheses end, with penalties."""

from tests.contrib.programs.frame import values


def _beams(tf, run, length_weight, coverage_weight):
    seq2seq = tf.contrib.seq2seq
    memory = tf.constant(3.0 * values(1, 2, 5, 6))
    lengths = tf.constant([5, 3])
    attention = seq2seq.LuongAttention(
        6, seq2seq.tile_batch(memory, 3), seq2seq.tile_batch(lengths, 3)
    )
    cell = seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(6), attention, attention_layer_size=8)
    # The end, 2, is likely.
    likely = tf.constant([0.0, 0.0, 2.0] + [0.0] * 5)
    table = tf.get_variable("table", [8, 6])
    projection = tf.layers.Dense(8, name="projection", activation=lambda x: 4.0 * x + likely)
    decoder = seq2seq.BeamSearchDecoder(
        cell,
        table,
        tf.fill([2], 1),
        2,
        cell.zero_state(6, tf.float32),
        3,
        projection,
        length_penalty_weight=length_weight,
        coverage_penalty_weight=coverage_weight,
    )
    found, state, steps = seq2seq.dynamic_decode(decoder, maximum_iterations=7)
    scores = found.beam_search_decoder_output.scores
    return run([found.predicted_ids, scores, state.log_probs, state.finished, steps])


def beams_with_coverage(tf, run):
    return _beams(tf, run, 0.0, 0.3)


def beams_with_length_and_coverage(tf, run):
    return _beams(tf, run, 0.6, 0.1)
