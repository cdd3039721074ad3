"""Calls whose operations are counted: an operation without a seed takes the number made before it.

``tools/record_op_seeds.py`` counts them under TensorFlow 1.15, so this file is Python 3.7.
"""

import contextlib
from typing import Any

import numpy as np

CALLS = r"""
tf.constant(1.0)
tf.zeros([2,3])
tf.zeros([2000])
tf.zeros(tf.shape(X))
tf.ones([3])
tf.fill([2],1.)
tf.zeros_like(X)
tf.zeros_like(U)
tf.ones_like(X)
tf.random_normal([2])
tf.random_uniform([2])
tf.random_uniform([2],-1.,1.)
tf.random_uniform([2],0,10,tf.int32)
tf.truncated_normal([2])
tf.random_shuffle(X)
tf.multinomial(X,2)
tf.random_gamma([2],1.0)
tf.random_poisson(1.0,[2])
tf.random_crop(X,[1,2])
tf.nn.dropout(X,0.5)
tf.nn.dropout(X,1.0)
tf.nn.dropout(U,0.5)
tf.nn.dropout(X,KP)
tf.nn.dropout(X,rate=0.5)
tf.nn.dropout(X,rate=KP)
tf.nn.dropout(X,0.5,noise_shape=[1,3])
X+1
X+X
X-X
X*2.
X/2.
X//2.
X%2.
-X
X**2
2*X
1-X
X>1
X==X
X[0]
X[1:]
X[:,0]
X[...,None]
X[0,1]
tf.add(X,1.)
tf.add_n([X,X])
tf.matmul(X,X,transpose_b=True)
tf.square(X)
tf.sqrt(X)
tf.exp(X)
tf.log(X)
tf.pow(X,2.)
tf.abs(X)
tf.sign(X)
tf.maximum(X,0.)
tf.sigmoid(X)
tf.tanh(X)
tf.nn.relu(X)
tf.nn.elu(X)
tf.nn.leaky_relu(X)
tf.nn.relu6(X)
tf.nn.softplus(X)
tf.nn.softmax(X)
tf.nn.softmax(X,0)
tf.nn.log_softmax(X)
tf.nn.softmax_cross_entropy_with_logits(logits=X,labels=X)
tf.nn.softmax_cross_entropy_with_logits(logits=N,labels=N)
tf.nn.softmax_cross_entropy_with_logits_v2(logits=X,labels=X)
tf.nn.softmax_cross_entropy_with_logits_v2(logits=N,labels=N)
tf.nn.sparse_softmax_cross_entropy_with_logits(logits=X,labels=I)
tf.nn.sigmoid_cross_entropy_with_logits(logits=X,labels=X)
tf.nn.weighted_cross_entropy_with_logits(logits=X,targets=X,pos_weight=2.)
tf.nn.l2_loss(X)
tf.nn.l2_normalize(X,1)
tf.nn.moments(X,[0])
tf.nn.batch_normalization(X,0.,1.,0.,1.,1e-3)
tf.nn.fused_batch_norm(IM,[1.],[0.])
tf.nn.bias_add(X,[1.,2.,3.])
tf.nn.conv2d(IM,np.zeros((1,1,1,2),'f'),[1,1,1,1],'SAME')
tf.nn.max_pool(IM,[1,2,2,1],[1,2,2,1],'SAME')
tf.nn.avg_pool(IM,[1,2,2,1],[1,2,2,1],'SAME')
tf.nn.depthwise_conv2d(IM,np.zeros((1,1,1,2),'f'),[1,1,1,1],'SAME')
tf.nn.conv2d_transpose(IM,np.zeros((1,1,1,1),'f'),[1,4,4,1],[1,1,1,1])
tf.nn.lrn(IM)
tf.nn.embedding_lookup(X,[1])
tf.nn.top_k(X,1)
tf.nn.in_top_k(X,I,1)
tf.nn.xw_plus_b(X,np.zeros((3,2),'f'),[0.,0.])
tf.nn.zero_fraction(X)
tf.nn.log_poisson_loss(X,X)
tf.reduce_sum(X)
tf.reduce_sum(X,1)
tf.reduce_sum(N)
tf.reduce_mean(X)
tf.reduce_mean(N)
tf.reduce_mean(X,axis=1,keepdims=True)
tf.reduce_max(X)
tf.reduce_prod(X)
tf.reduce_all(X>0)
tf.reduce_logsumexp(X,1)
tf.argmax(X,1)
tf.argmin(X,0)
tf.cast(X,tf.int32)
tf.to_float(I)
tf.equal(I,I)
tf.where(X>1.,X,X)
tf.where(X>1.)
tf.clip_by_value(X,0.,1.)
tf.clip_by_norm(X,1.)
tf.clip_by_global_norm([X,X],1.)
tf.global_norm([X,X])
tf.concat([X,X],0)
tf.stack([X,X])
tf.unstack(X)
tf.split(X,3,1)
tf.split(X,[1,2],1)
tf.reshape(X,[-1])
tf.reshape(X,[3,2])
tf.expand_dims(X,0)
tf.squeeze(tf.placeholder(tf.float32,[1,2]))
tf.transpose(X)
tf.transpose(X,[1,0])
tf.transpose(N)
tf.tile(X,[2,1])
tf.gather(X,[0])
tf.gather_nd(X,[[0,1]])
tf.one_hot(I,3)
tf.one_hot([0,1],3)
tf.shape(X)
tf.shape(N)
tf.size(X)
tf.rank(X)
tf.range(3)
tf.range(0,10,2)
tf.linspace(0.,1.,3)
tf.eye(3)
tf.diag([1.,2.])
tf.boolean_mask(X,[True,False])
tf.sequence_mask([1,2],3)
tf.reverse(X,[0])
tf.pad(X,[[1,1],[0,0]])
tf.slice(X,[0,0],[1,1])
tf.cumsum(X)
tf.norm(X)
tf.tensordot(X,X,[[0],[0]])
tf.einsum('ij,kj->ik',X,X)
tf.squared_difference(X,X)
tf.truediv(I,2)
tf.identity(X)
tf.stop_gradient(X)
tf.group(X.op)
tf.tuple([X,X])
tf.no_op()
tf.broadcast_to(X,[2,2,3])
tf.segment_sum(X,[0,1])
tf.unsorted_segment_sum(X,[0,1],2)
tf.unique(I)
tf.scatter_nd([[0]],[1.],[3])
tf.dynamic_partition(X,[0,1],2)
tf.is_nan(X)
tf.check_numerics(X,'m')
tf.Assert(True,[X])
tf.assert_equal(I,I)
tf.Print(X,[X])
tf.sort(X)
tf.argsort(X)
tf.count_nonzero(X)
tf.accumulate_n([X,X])
tf.cond(B,lambda: X,lambda: X+1)
tf.while_loop(lambda i: i<3,lambda i: i+1,[0])
tf.map_fn(lambda x: x+1,X)
tf.scan(lambda a,x: a+x,X)
tf.foldl(lambda a,x: a+x,X)
tf.case([(B,lambda: X)],lambda: X+1)
tf.TensorArray(tf.float32,3).write(0,1.0).stack()
tf.Variable(1.0)
tf.Variable(tf.zeros([2]))
tf.Variable(np.zeros(2,'f'))
tf.Variable(lambda: tf.zeros([2]))
tf.Variable(1.0,use_resource=True)
tf.get_variable('w',[2,3])
tf.get_variable('w',[2,3],use_resource=True)
tf.get_variable('w',initializer=np.zeros(2,'f'))
tf.get_variable('w',[2],initializer=tf.zeros_initializer())
tf.get_variable('w',[2],initializer=tf.ones_initializer())
tf.get_variable('w',[2],initializer=tf.constant_initializer(1.))
tf.get_variable('w',[2,2],initializer=tf.orthogonal_initializer())
tf.get_variable('w',[2,2],initializer=tf.truncated_normal_initializer())
tf.get_variable('w',[2,2],initializer=tf.random_uniform_initializer())
tf.get_variable('w',[2,2],initializer=tf.uniform_unit_scaling_initializer())
tf.get_variable('w',[2,2],initializer=tf.initializers.identity())
V.assign(V+1.)
V.assign_add(1.)
V+1.
V*V
tf.assign(V,2.)
tf.global_variables_initializer()
tf.initialize_all_variables()
tf.train.get_or_create_global_step()
tf.train.exponential_decay(.1,V,10,.9)
tf.placeholder(tf.float32,[2])
tf.placeholder_with_default(1.0,[])
tf.py_func(lambda x:x,[X],tf.float32)
tf.FIFOQueue(3,tf.float32)
tf.layers.dense(X,4)
tf.layers.dense(X,4,tf.nn.relu)
tf.nn.rnn_cell.BasicLSTMCell(4).zero_state(2,tf.float32)
tf.nn.rnn_cell.BasicRNNCell(4)(X,tf.zeros([2,4]))
tf.nn.rnn_cell.GRUCell(4)(X,tf.zeros([2,4]))
tf.nn.rnn_cell.BasicLSTMCell(4)(X,(tf.zeros([2,4]),tf.zeros([2,4])))
tf.nn.rnn_cell.LSTMCell(4)(X,(tf.zeros([2,4]),tf.zeros([2,4])))
tf.nn.static_rnn(tf.nn.rnn_cell.BasicRNNCell(4),[X,X],dtype=tf.float32)
tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicRNNCell(4),SEQ,dtype=tf.float32)
tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(4),SEQ,dtype=tf.float32)
tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(4),SEQ,I,dtype=tf.float32)
tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(4),DSEQ,dtype=tf.float32)
tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicRNNCell(4),DSEQ,DLEN,dtype=tf.float32)
tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicRNNCell(4),SEQ,dtype=tf.float32,time_major=True)
tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicRNNCell(4),SEQ,initial_state=tf.zeros([2,4]))
tf.nn.rnn_cell.BasicRNNCell(4).zero_state(tf.shape(DSEQ)[0],tf.float32)
tf.nn.bidirectional_dynamic_rnn(tf.nn.rnn_cell.BasicRNNCell(4),tf.nn.rnn_cell.BasicRNNCell(4),SEQ,dtype=tf.float32)
tf.nn.sparse_softmax_cross_entropy_with_logits(logits=SEQ,labels=tf.placeholder(tf.int32,[2,5]))
tf.nn.softmax_cross_entropy_with_logits_v2(logits=SEQ,labels=SEQ)
tf.nn.softmax_cross_entropy_with_logits_v2(logits=DSEQ,labels=DSEQ)
tf.map_fn(lambda x: x+tf.random_normal([]),X)
tf.scan(lambda a,x: a+x+tf.random_normal([]),X)
tf.foldl(lambda a,x: a+x+tf.random_normal([]),X)
tf.foldr(lambda a,x: a+x+tf.random_normal([]),X)
tf.map_fn(lambda x: x+tf.random_normal([]),N)
tf.scan(lambda a,x: a+x+tf.random_normal([]),X,initializer=tf.zeros([3]))
tf.cond(B,lambda: X+tf.random_normal([2,3]),lambda: X*2+tf.random_normal([2,3]))
tf.zeros_like(SEQ)
tf.scan(lambda a,x: a+x+tf.random_normal([]),N)
tf.scan(lambda a,x: a+x+tf.random_normal([]),N,initializer=tf.zeros([10]))
tf.foldl(lambda a,x: a+x+tf.random_normal([]),N)
tf.foldr(lambda a,x: a+x+tf.random_normal([]),N)
tf.foldl(lambda a,x: a+x+tf.random_normal([]),X,initializer=tf.zeros([3]))
tf.foldr(lambda a,x: a+x+tf.random_normal([]),X,initializer=tf.zeros([3]))
tf.scan(lambda a,x: a+x+tf.random_normal([]),X,reverse=True)
tf.map_fn(lambda x: x[0]+x[1]+tf.random_normal([]),(X,X),dtype=tf.float32)
tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicRNNCell(4),tf.placeholder(tf.float32,[None,5,3]),dtype=tf.float32)
tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicRNNCell(4),tf.placeholder(tf.float32,[2,None,3]),dtype=tf.float32)
tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicRNNCell(4),tf.placeholder(tf.float32,[None,None,3]),dtype=tf.float32)
tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicRNNCell(4),tf.placeholder(tf.float32,[None,5,3]),DLEN,dtype=tf.float32)
tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicRNNCell(4),tf.placeholder(tf.float32,[2,None,3]),DLEN,dtype=tf.float32)
tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicRNNCell(4),tf.placeholder(tf.float32,[2,None,3]),I,dtype=tf.float32)
tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicRNNCell(4),tf.placeholder(tf.float32,[2,5,3]),DLEN,dtype=tf.float32)
tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicRNNCell(4),tf.placeholder(tf.float32,[None,5,3]),DLEN,dtype=tf.float32,time_major=True)
tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(4),tf.placeholder(tf.float32,[None,5,3]),DLEN,dtype=tf.float32,time_major=True)
tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(4),tf.placeholder(tf.float32,[None,None,3]),dtype=tf.float32)
tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(4),tf.placeholder(tf.float32,[None,None,3]),DLEN,dtype=tf.float32)
tf.nn.static_rnn(tf.nn.rnn_cell.LSTMCell(4),[tf.placeholder(tf.float32,[None,3])]*2,dtype=tf.float32)
tf.zeros_like(tf.placeholder(tf.float32,[100,100]))
tf.nn.batch_normalization(X,tf.zeros([3]),tf.ones([3]),tf.zeros([3]),tf.ones([3]),1e-3)
tf.nn.embedding_lookup(V2,I)
tf.split(V2,2)
tf.random_uniform([2],0,5.)
tf.random_uniform([2],maxval=3.)
tf.random_uniform([2],0,1,tf.float32)
tf.random_uniform([2],0.,1.)
tf.random_uniform([2],dtype=tf.float64)
tf.random_uniform(tf.shape(DSEQ))
tf.data.Dataset.from_tensor_slices(np.arange(4))
tf.data.Dataset.from_tensor_slices(np.arange(4)).map(lambda a: a * 2)
tf.data.Dataset.from_tensor_slices(np.arange(4)).map(lambda a: a * 2, num_parallel_calls=2)
tf.data.Dataset.from_tensor_slices(np.arange(4)).filter(lambda a: a > 2)
tf.data.Dataset.from_tensor_slices(np.arange(4)).shuffle(3)
tf.data.Dataset.from_tensor_slices(np.arange(4)).shuffle(3, seed=1)
tf.data.Dataset.from_tensor_slices(np.arange(4)).batch(2)
tf.data.Dataset.from_tensor_slices(np.arange(4)).repeat()
tf.data.Dataset.from_tensor_slices(np.arange(4)).prefetch(1)
tf.data.Dataset.from_tensor_slices(np.arange(4)).padded_batch(2, [])
tf.data.Dataset.from_tensor_slices(np.arange(4)).cache()
tf.data.Dataset.from_tensor_slices(np.arange(4)).shard(2, 0)
tf.data.Dataset.from_tensor_slices(np.arange(4)).apply(tf.data.experimental.shuffle_and_repeat(3))
tf.data.Dataset.range(4).apply(tf.data.experimental.map_and_batch(lambda a: a, 2))
tf.data.Dataset.range(5)
tf.data.Dataset.from_tensors(np.arange(4))
tf.data.Dataset.from_generator(lambda: iter([1]), tf.int32, [])
tf.data.Dataset.list_files(['x'], shuffle=False)
tf.data.Dataset.list_files('x*')
tf.data.TextLineDataset('x')
tf.data.TFRecordDataset(['x', 'y'])
tf.data.TFRecordDataset(['x', 'y'], num_parallel_reads=2)
tf.data.FixedLengthRecordDataset('x', 4)
tf.data.Dataset.from_tensor_slices(np.arange(4)).make_one_shot_iterator().get_next()
tf.data.Dataset.from_tensor_slices(np.arange(4)).make_initializable_iterator().get_next()
tf.data.Dataset.from_tensor_slices(np.arange(4)).make_initializable_iterator().string_handle()
tf.data.Iterator.from_structure(tf.int64, []).get_next()
tf.data.Iterator.from_string_handle(tf.placeholder(tf.string, []), tf.int64, []).get_next()
""".strip().splitlines()


def _inputs(tf: Any) -> "dict[str, Any]":
    """The tensors and variables that the calls take."""
    return {
        "tf": tf,
        "np": np,
        "X": tf.placeholder(tf.float32, [2, 3]),
        "N": tf.placeholder(tf.float32, [None, 10]),
        "U": tf.placeholder(tf.float32),
        "I": tf.placeholder(tf.int32, [2]),
        "B": tf.placeholder(tf.bool, []),
        "KP": tf.placeholder(tf.float32, []),
        "IM": tf.placeholder(tf.float32, [1, 4, 4, 1]),
        "SEQ": tf.placeholder(tf.float32, [2, 5, 3]),
        "DSEQ": tf.placeholder(tf.float32, [None, None, 3]),
        "DLEN": tf.placeholder(tf.int32, [None]),
        "V": tf.Variable(1.0),
        "V2": tf.Variable(np.zeros((4, 3), np.float32)),
    }


def counted(tf: Any, call: str) -> "list[Any]":
    """How many operations ``call`` makes, and the seeds of its random ones, less those before."""
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(1)
        inputs = _inputs(tf)
        before = graph._last_id
        known = set(graph.get_operations())
        eval(call, inputs)
        seeds = []
        for op in graph.get_operations():
            if op not in known and op.type != "RandomShuffleQueueV2":
                with contextlib.suppress(ValueError):
                    seeds.append(int(op.get_attr("seed2")) - before)
        return [graph._last_id - before, seeds]


def drawn(tf: Any) -> "dict[str, Any]":
    """The first numbers of a plain program that sets the graph's seed only, by name."""
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(7)
        x = tf.placeholder(tf.float32, [None, 4])
        w = tf.Variable(tf.random_normal([4, 3], stddev=0.1))
        b = tf.Variable(tf.zeros([3]))
        hidden = tf.nn.dropout(tf.nn.relu(tf.matmul(x, w) + b), 0.5)
        v = tf.get_variable("v", [3, 2])
        u = tf.Variable(tf.truncated_normal([2, 2]))
        scores = tf.matmul(tf.matmul(hidden, v), u)
        loss = tf.reduce_mean(
            tf.nn.softmax_cross_entropy_with_logits(logits=scores, labels=tf.ones([2, 2]) / 2)
        )
        noise = tf.random_uniform([3])
        step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        with tf.Session(graph=graph) as sess:
            sess.run(tf.global_variables_initializer())
            fed = {x: np.ones((2, 4), np.float32)}
            found = {"initial w": sess.run(w), "initial v": sess.run(v), "initial u": sess.run(u)}
            for i in range(3):
                sess.run(step, fed)
                found[f"noise {i}"] = sess.run(noise)
                found[f"loss {i}"] = sess.run(loss, fed)
            found["trained w"] = sess.run(w)
    return {name: np.asarray(value).tolist() for name, value in found.items()}
