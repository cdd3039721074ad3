"""Examples of operations that work element by element."""

import numpy as np

from tests.conformance.exchange import Inputs, call

X = [-0.75, -0.25, 0.0, 0.5]
POSITIVE = [0.25, 0.5, 1.0, 3.0]
COMPLEX = np.array([1 + 2j, -3j, 0.5 + 0j], np.complex64)
FLAGS = np.array([True, True, False, False])
INTS = [-7, 7, 5, -5]

EXAMPLES = {
    name: call(X)
    for name in (
        *("Abs", "Acos", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Elu", "Erf"),
        *("Erfc", "Exp", "Expm1", "Floor", "LeakyRelu", "Log1p", "Neg", "Relu", "Relu6", "Rint"),
        *("Round", "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Square"),
        *("Tan", "Tanh", "Identity", "OnesLike", "ZerosLike", "Snapshot", "StopGradient"),
        "GuaranteeConst",
        *("PreventGradient", "IsFinite", "IsInf", "IsNan", "Ndtri", "Erfinv", "BesselI0e"),
        *("BesselI1e", "CheckNumerics", "DeepCopy"),
    )
}
EXAMPLES |= {name: call(POSITIVE) for name in ("Digamma", "Inv", "Lgamma", "Log", "Reciprocal")}
EXAMPLES |= {name: call(POSITIVE) for name in ("Rsqrt", "Sqrt")}
EXAMPLES |= {
    name: call(X, [1.0, 2.0, 3.0, 4.0])
    for name in (
        *("Add", "AddV2", "Sub", "Mul", "Div", "RealDiv", "DivNoNan", "MulNoNan", "Maximum"),
        *("Minimum", "SquaredDifference", "Atan2", "FloorDiv", "FloorMod", "Equal", "NotEqual"),
        *("Less", "LessEqual", "Greater", "GreaterEqual", "ApproximateEqual", "NextAfter"),
        *("InvGrad", "ReciprocalGrad", "SigmoidGrad", "TanhGrad", "EluGrad", "SeluGrad"),
        *("ReluGrad", "Relu6Grad", "LeakyReluGrad", "SoftplusGrad", "SoftsignGrad"),
    )
}
EXAMPLES |= {
    name: call(POSITIVE, [1.5, 2.0, 3.0, 4.0])
    for name in (
        *("Pow", "Xdivy", "Xlogy", "Xlog1py", "SqrtGrad", "RsqrtGrad", "Zeta", "Polygamma"),
        *("Igamma", "Igammac", "IgammaGradA"),
    )
}
EXAMPLES |= {
    name: call(INTS, [2, -2, 3, -3]) for name in ("Mod", "TruncateDiv", "TruncateMod", "BitwiseAnd")
}
EXAMPLES |= {
    "Polygamma": call([1.0, 2.0], [1.5, 2.5]),
    "Zeta": call([2.0, 3.0], [1.5, 2.5]),
    "Betainc": call([1.0, 2.0], [1.5, 2.5], [0.25, 0.5]),
    "BitwiseOr": call([1, 2], [4, 3]),
    "BitwiseXor": call([1, 2], [4, 3]),
    "LeftShift": call([1, 2], [4, 3]),
    "RightShift": call([100, -100], [4, 3]),
    "Invert": call([1, -2]),
    "PopulationCount": call([1, 255, -1]),
    "LogicalAnd": call(FLAGS, ~FLAGS),
    "LogicalOr": call(FLAGS, ~FLAGS),
    "LogicalNot": call(FLAGS),
    "Acosh": call([1.0, 2.5]),
    "Angle": call(COMPLEX),
    "Complex": call([1.0, 2.0], [3.0, -4.0]),
    "ComplexAbs": call(COMPLEX),
    "Conj": call(COMPLEX),
    "Imag": call(COMPLEX),
    "Real": call(COMPLEX),
    "Cast": [
        call([1.75, -2.5], DstT=3),
        call([0, 2], DstT=10),
        call([1.5, 2.25], DstT=14),
        call([1.5, 2.25], DstT=19),
    ],
    "Bitcast": call([1.0, -2.0], type=3),
    "AddN": call(Inputs([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])),
    "AccumulateNV2": call(Inputs([[1.0, 2.0], [3.0, 4.0]]), shape=[2]),
    "Select": call(FLAGS, X, POSITIVE),
    "SelectV2": call(np.array([[True], [False]]), X, 5.0),
    "CheckNumerics": call(X, message="bad"),
    "CheckNumericsV2": call(X, message="bad"),
    "ClipByValue": call(X, -0.5, 0.25),
}
# Two types of the plainest operations, so that types other than float32 are exchanged too.
EXAMPLES["AddV2"] = [
    call(np.array([1, 2], dtype), np.array([3, 4], dtype))
    for dtype in ("float32", "float64", "float16", "int8", "uint8", "int64", "complex64", "uint64")
]
EXAMPLES["Add"] = [EXAMPLES["Add"], call(["a", "b"], ["c", "d"])]
