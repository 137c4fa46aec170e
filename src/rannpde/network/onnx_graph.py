"""A sum of features on boxes as a graph of ONNX operators in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from rannpde.network.plain import PlainFunction

OPERATORS_OF_ONNX = {"tanh": "Tanh", "sigmoid": "Sigmoid", "cos": "Cos", "sin": "Sin", "relu": "Relu"}


class GraphBuilder:
    """Collects nodes and constants; every method gives back the name of what it computes."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, array: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def number(self, value: float) -> str:
        return self.constant(np.asarray(value, dtype=float))

    def apply(self, operator: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def squeezed(self, value: str, axis: int) -> str:
        return self.apply("Squeeze", value, self.constant(np.array([axis])))

    def unsqueezed(self, value: str, axis: int) -> str:
        return self.apply("Unsqueeze", value, self.constant(np.array([axis])))

    def profile(self, activation: str, phase: str) -> list[str]:
        """The columns of a hidden layer."""
        if activation == "fourier":
            return [self.apply("Cos", phase), self.apply("Sin", phase)]
        if activation in OPERATORS_OF_ONNX:
            return [self.apply(OPERATORS_OF_ONNX[activation], phase)]
        if activation == "swish":
            return [self.apply("Mul", phase, self.apply("Sigmoid", phase))]
        if activation == "softplus":  # max(z, 0) + log(1 + exp(-|z|)), which overflows nowhere
            small = self.apply("Exp", self.apply("Neg", self.apply("Abs", phase)))
            return [
                self.apply(
                    "Add", self.apply("Relu", phase), self.apply("Log", self.apply("Add", small, self.number(1)))
                )
            ]
        if activation == "gaussian":
            return [self.apply("Exp", self.apply("Mul", self.number(-0.5), self.apply("Mul", phase, phase)))]
        return [self.apply("Min", self.number(1.0), self.apply("Max", phase, self.number(-1.0)))]


def feature_graph(onnx: Any, function: PlainFunction, opset: int, ir_version: int) -> Any:
    """The model of a function."""
    graph, parts, boxes = GraphBuilder(onnx), function.arrays, function.arrays["boxes"]
    home = _located(graph, boxes)
    if home is None:
        centre, half = graph.constant(parts["centre"][0]), graph.constant(parts["halfwidth"][0])
    else:
        centre, half = (graph.apply("Gather", graph.constant(parts[key]), home) for key in ("centre", "halfwidth"))
    scaled = graph.apply("Div", graph.apply("Sub", "points", centre), half)
    if len(parts["weights"]) == 1:
        product, biases = graph.apply("MatMul", scaled, graph.constant(parts["weights"][0])), parts["biases"][0]
        phase = graph.apply("Add", product, graph.constant(biases))
    else:
        assert home is not None
        own = graph.apply("Gather", graph.constant(parts["layer"]), home)
        weights = graph.apply("Gather", graph.constant(parts["weights"]), own)
        product = graph.squeezed(graph.apply("MatMul", graph.unsqueezed(scaled, 1), weights), 1)
        phase = graph.apply("Add", product, graph.apply("Gather", graph.constant(parts["biases"]), own))
    first = graph.apply("Gather", scaled, graph.constant(np.array([0])), axis=1)
    one = graph.apply("Add", graph.apply("Mul", first, graph.number(0.0)), graph.number(1.0))
    table = graph.apply("Concat", *graph.profile(function.activation, phase), one, axis=1)
    legendre = [one, first]
    for n in range(1, parts["coefficients"].shape[1] - 1):
        up = graph.apply("Mul", graph.number(2 * n + 1), graph.apply("Mul", first, legendre[n]))
        down = graph.apply("Mul", graph.number(n), legendre[n - 1])
        legendre.append(graph.apply("Div", graph.apply("Sub", up, down), graph.number(n + 1)))
    total = ""
    for degree in range(parts["coefficients"].shape[1]):
        table_of_degree = parts["coefficients"][:, degree]
        if home is None:
            value = graph.apply("MatMul", table, graph.constant(table_of_degree[0]))
        else:
            gathered = graph.apply("Gather", graph.constant(table_of_degree), home)
            value = graph.squeezed(graph.apply("MatMul", graph.unsqueezed(table, 1), gathered), 1)
        value = graph.apply("Mul", legendre[degree], value) if degree else value
        total = graph.apply("Add", total, value) if total else value
    result = graph.squeezed(total, 1) if function.single else total
    graph.nodes.append(onnx.helper.make_node("Identity", [result], ["values"]))
    double = onnx.TensorProto.DOUBLE
    shape = ["M"] if function.single else ["M", int(parts["coefficients"].shape[3])]
    inputs = [onnx.helper.make_tensor_value_info("points", double, ["M", function.dim])]
    outputs = [onnx.helper.make_tensor_value_info("values", double, shape)]
    made = onnx.helper.make_graph(graph.nodes, "rannpde", inputs, outputs, graph.constants)
    version = onnx.helper.make_opsetid("", opset)
    return onnx.helper.make_model(made, opset_imports=[version], ir_version=ir_version, producer_name="rannpde")


def _located(graph: GraphBuilder, boxes: Any) -> str | None:
    """The number of the box of each point, the nearest where it lies in none; None for a single box."""
    if len(boxes) == 1:
        return None
    points = graph.unsqueezed("points", 1)
    below = graph.apply("Sub", graph.constant(boxes[..., 0]), points)
    above = graph.apply("Sub", points, graph.constant(boxes[..., 1]))
    away = graph.apply("Max", graph.apply("Max", below, above), graph.number(0.0))
    distance = graph.apply("ReduceSum", graph.apply("Mul", away, away), graph.constant(np.array([2])), keepdims=0)
    return graph.apply("ArgMin", distance, axis=1, keepdims=0)
