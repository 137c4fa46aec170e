# ruff: noqa: E501  (a row of the table is a line)
"""Every definition, statement, formula, figure and setting of the paper, with its place in the code, test and figure.

``table()`` is the table of docs/theory.md; a test keeps it, the names and the tests true.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PaperStatement:
    """label : the paper's label, or its section; code : dotted name under rannpde; test : file::function under tests

    figure : chapters of the report that show it, separated by commas; empty where there is none
    """

    label: str
    what: str
    code: str
    test: str
    figure: str = ""


_BOUNDS, _ERRATA, _COROLLARIES = "theory/test_bounds.py", "theory/test_errata.py", "theory/test_corollaries.py"
_UNBIASED, _RIDGELET, _TARGETS = "theory/test_unbiased.py", "theory/test_ridgelet_function.py", "theory/test_targets.py"
_WAVE, _PROFILE, _FIT = "pde/zoo/test_travelling_wave.py", "pde/zoo/test_barenblatt.py", "studies/run/test_fit.py"
_FEATURES, _LAWS = "network/test_features.py", "network/test_laws.py"

STATEMENTS: tuple[PaperStatement, ...] = tuple(
    PaperStatement(*row)
    for row in (
        # 2 Preliminaries
        ("def:rann", "time-dependent random network", "network.network.Network", "network/test_network.py::test_values_and_derivatives_by_hand"),
        ("RANN", "Σ W_i σ(τ_i t + a_i·x + b_i)", "network.features.RandomFeatures", f"{_FEATURES}::test_random_columns_are_the_definition"),
        ("§2.2", "PINN loss: equation, initial and boundary residuals", "pde.residual.Term", f"{_COROLLARIES}::test_initial_and_boundary_residuals_are_bounded_by_traces", "pinn-loss"),
        ("ridge-defn", "ridgelet transform R_ψ u, s = 0", "theory.ridgelet.ridgelet_transform", f"{_TARGETS}::test_closed_form_transform_is_the_integral"),
        ("§2.3", "dual ridgelet transform R†_η T", "theory.ridgelet.dual_transform", f"{_UNBIASED}::test_dual_transform_by_sobol_points"),
        ("§2.4", "spaces H^p_t H^q_x and their norms", "domains.norms.sobolev_norm", f"{_TARGETS}::test_norms_of_whole_order_are_sums_of_derivatives", "sobolev-rates"),
        # 3.1 Integral representation
        ("def:Tk (i)", "class T_k: bounded derivatives", "network.activations.Activation", "network/test_activations.py::test_class_T_is_answered_truthfully"),
        ("def:Tk (ii)", "J_σ ≠ 0", "theory.ridgelet_function.kernel_constant", f"{_RIDGELET}::test_kernel_constants_do_not_vanish"),
        ("psi-condition", "A_ψ,m", "theory.ridgelet_function.RidgeletFunction", f"{_RIDGELET}::test_vanishing_constant_agrees_with_quadrature"),
        ("prop:u-rep", "u = R†_σ R_ψ u", "theory.ridgelet.reconstruct", f"{_UNBIASED}::test_dual_of_the_transform_is_the_function"),
        ("u-representation", "integral representation; pointwise where û ∈ L¹", "theory.errata.truncated_inversion", f"{_ERRATA}::test_i_inversion_holds_at_points_only_where_the_transform_is_integrable"),
        ("psi-growth", "|ψ̂| ≤ C|ω|^m", "theory.ridgelet_function.RidgeletFunction", f"{_RIDGELET}::test_vanishing_constant_is_infinite_from_twice_the_order"),
        ("prop:u-rep, K", "admissibility constant K_ψ,σ", "theory.ridgelet_function.admissibility_constant", f"{_RIDGELET}::test_normalised_constant_is_one"),
        # 3.2 Parseval relation
        ("lemma:parseval", "Parseval-type lemma", "theory.bounds.parseval_check", f"{_BOUNDS}::test_corrected_lemma_holds"),
        ("parseval", "its left-hand side", "theory.dimension.log_parseval_left", f"{_BOUNDS}::test_left_side_of_the_lemma_agrees_with_its_closed_integral"),
        ("Lpsi", "L_ψ", "theory.bounds.parseval_constant", f"{_BOUNDS}::test_printed_lemma_constant_is_the_printed_formula"),
        # 3.3 Theorem
        ("thm1", "unbiased network with rate N^(-1/2)", "theory.unbiased.unbiased_network", f"{_UNBIASED}::test_mean_is_the_function_with_its_derivatives", "theory-rates"),
        ("pi", "heavy-tailed law π", "network.laws.HeavyTailed", f"{_LAWS}::test_density_is_normalised", "weight-laws"),
        ("thm1, C_π", "normalisation C_π", "theory.bounds.normaliser", f"{_BOUNDS}::test_normaliser_closed_form_is_the_integral"),
        ("thm-ineq", "bound of E‖u - u_N‖²", "theory.bounds.theorem_bound", f"{_BOUNDS}::test_corrected_theorem_is_above_the_variance", "theory-rates"),
        ("thm1, C_Ω", "extension constant C_Ω", "theory.extension.Reflection", f"{_COROLLARIES}::test_the_constant_bounds_the_norm_of_the_extension_on_boxes"),
        ("rmk:smoothness", "smoothness s_1 > 3/2, s_2 > (d+2)/2", "theory.bounds.check_smoothness", f"{_BOUNDS}::test_missing_smoothness_is_named"),
        ("§3.3, remark", "growth of the coefficient with d", "theory.dimension.growth", f"{_BOUNDS}::test_true_growth_is_slow_for_small_decay_and_exponential_for_the_recommended_one", "dimension"),
        # 4.1 Porous medium
        ("PME", "∂_t u = Δ(u^m)", "theory.losses.porous_medium", f"{_COROLLARIES}::test_the_loss_vanishes_on_barenblatt_solutions_of_every_exponent"),
        ("u0-PME", "u_0 ∈ H^k(R^d), u_0 ≥ c: empty", "theory.errata.modal_norm", f"{_ERRATA}::test_a_a_function_bounded_below_is_in_no_sobolev_space_of_the_whole_space"),
        ("§4.1, J_PDE", "PINN loss of the porous medium equation", "theory.losses.porous_medium_loss", f"{_BOUNDS}::test_porous_medium_loss_of_a_parabola", "pinn-loss"),
        ("cor:PME", "Corollary PME; u_0 ∈ H^1 and t ≥ t_0", "theory.errata.modal_norm", f"{_ERRATA}::test_c_data_in_h1_give_no_such_norm_down_to_the_first_time"),
        ("PME-bound", "part 1, 𝓜_ψ", "theory.corollaries.porous_medium_approximation", f"{_COROLLARIES}::test_first_part_of_both_corollaries_is_the_theorem"),
        ("pme-residual-1", "part 2, bound of J_PDE", "theory.corollaries.porous_medium_corollary", f"{_COROLLARIES}::test_porous_medium_corollary_on_a_true_solution", "pinn-loss"),
        ("cor:PME, C_emb", "embedding constant", "theory.corollaries.embedding_constant", f"{_BOUNDS}::test_embedding_constant_is_sharp_enough"),
        # 4.2 Navier–Stokes
        ("NSE", "compressible Navier–Stokes equations", "theory.losses.navier_stokes", f"{_COROLLARIES}::test_the_losses_vanish_on_travelling_waves_of_every_gas"),
        ("§4.2, p and μ", "p = ρ^γ, μ = ρ^α", "theory.losses.Gas", f"{_COROLLARIES}::test_powers_need_positive_functions_only_where_they_are_no_polynomials"),
        ("NSE-ID", "initial data of the circle", "theory.flows.PeriodicFlow", f"{_COROLLARIES}::test_the_computed_flow_solves_its_equations_and_keeps_its_mass", "pinn-loss"),
        ("nse-class", "regularity class: k ≥ 9, not 5", "theory.errata.modal_norm", f"{_ERRATA}::test_d_each_time_derivative_costs_two_in_space"),
        ("§4.2, J¹ and J²", "PINN losses of mass and momentum", "theory.losses.navier_stokes_losses", f"{_BOUNDS}::test_losses_vanish_for_solutions", "pinn-loss"),
        ("§4.2, product norm", "‖(f, g)‖² = ‖f‖² + ‖g‖²", "domains.norms.sobolev_norm", f"{_COROLLARIES}::test_first_part_of_both_corollaries_is_the_theorem"),
        ("cor:NS, part 1", "bound of E‖(ρ, u) - v_N‖²", "theory.corollaries.navier_stokes_approximation", f"{_COROLLARIES}::test_first_part_of_both_corollaries_is_the_theorem"),
        ("NSE-residuals", "part 2, bound of J¹ + J², C_L and L", "theory.corollaries.navier_stokes_corollary", f"{_COROLLARIES}::test_navier_stokes_corollary_on_a_true_solution", "pinn-loss"),
        ("§4.2, remark", "initial and boundary residuals by traces", "theory.traces.condition_bounds", f"{_COROLLARIES}::test_initial_and_boundary_residuals_are_bounded_by_traces", "pinn-loss"),
        # 5 Numerical illustrations
        ("barenblatt", "Barenblatt profile", "pde.zoo.barenblatt.Barenblatt", f"{_PROFILE}::test_it_solves_the_porous_medium_equation", "porous-medium"),
        ("§5.1, error", "relative L² error 𝓡(u, û)", "domains.norms.relative_errors", f"{_FIT}::test_errors_are_relative_and_of_each_field", "porous-medium"),
        ("fig:RaNN-PME-d45", "errors in d = 4, 5", "studies.paper.porous_medium.chapter", "studies/paper/test_chapters.py::test_chapters_draw_and_speak_whatever_is_missing", "porous-medium, unknowns"),
        ("§5.2, wave", "travelling wave ansatz and speed", "pde.zoo.travelling_wave.TravellingWave", f"{_WAVE}::test_rankine_hugoniot_and_the_limits_at_both_ends", "navier-stokes"),
        ("fig:NS", "errors of the travelling wave", "studies.paper.navier_stokes.chapter", "studies/paper/test_chapters.py::test_chapters_draw_and_speak_whatever_is_missing", "navier-stokes"),
        ("§6", "spectral bias of random networks", "studies.paper.spectral_bias.chapter", "studies/paper/test_new_chapters.py::test_octaves_hold_their_share_of_the_energy", "spectral-bias"),
        # A.1 Proof of the proposition
        ("back-filter", "Λ^m: vanishing order of ψ̂", "theory.ridgelet_function.admissible", f"{_RIDGELET}::test_every_activation_has_an_admissible_function"),
        ("psi-construction", "ψ̂ = a (iω)^k e^(-ω²/2), real and smooth", "theory.ridgelet_function.RidgeletFunction", f"{_RIDGELET}::test_values_are_the_inverse_transform"),
        ("rmk:tanh", "tanh, cos and sigmoid are in T_k", "theory.ridgelet_function.kernel_constant", f"{_RIDGELET}::test_kernel_constant_of_cos_needs_an_even_power"),
        # A.2, A.3 Proof of the lemma
        ("plancherel-b", "Plancherel in b, ∂_ω", "theory.fourier_target.FourierTarget", f"{_TARGETS}::test_ray_integrals_agree_with_closed_forms"),
        ("I-split", "I_1, I_2A, I_2B: t u and x u", "theory.bounds.parseval_right", f"{_TARGETS}::test_coordinate_times_function"),
        ("§A.3, C_ψ", "C_ψ1, C_ψ2, C_ψ3", "theory.bounds.parseval_constants", f"{_BOUNDS}::test_parseval_constants_agree_with_quadrature"),
        ("§A.3, |ψ̂'|", "|ψ̂'| ≤ |ω||ψ̂|: fails on (1, √(M/2))", "theory.errata.derivative_gap", f"{_ERRATA}::test_f_the_derivative_inequality_fails_near_one"),
        # A.4 Proof of the theorem
        ("§A.4, Step 1", "extension and cut-off ũ = ηχ E u", "theory.boxed.box_target", f"{_TARGETS}::test_box_target_agrees_with_the_function_on_the_box"),
        ("thm1:u", "representation of ũ", "theory.boxed.box_target", f"{_TARGETS}::test_box_target_transform_is_that_of_the_cut_off_function"),
        ("§A.4, Step 2", "unbiased estimator u_N", "theory.unbiased.Estimator", f"{_UNBIASED}::test_mean_is_the_function_with_its_derivatives"),
        ("MC-intermediate", "N E‖u - u_N‖² is a variance", "theory.unbiased.Estimator", f"{_UNBIASED}::test_mean_square_error_times_width_is_the_variance", "theory-rates"),
        ("HpHq-MC", "the same with derivatives", "theory.bounds.theorem_bound", f"{_BOUNDS}::test_corrected_theorem_is_above_the_variance", "sobolev-rates"),
        ("rmk-growth", "growth factor F(d)", "theory.dimension.growth_factor", f"{_BOUNDS}::test_growth_remark_as_printed"),
        ("rmk-growth, ‖ψ̂‖²", "≤ 4π + Γ(d + 5/2): false", "theory.errata.remark_ridgelet_norm", f"{_ERRATA}::test_h_the_printed_norm_of_psi_is_false"),
        ("ineq-gamma", "inequality of log Γ", "theory.errata.growth_bound", f"{_ERRATA}::test_g_the_printed_bound_of_log_f_is_false"),
        ("logF", "bound of log F(d): false as printed", "theory.errata.growth_bound", f"{_ERRATA}::test_g_the_printed_bound_of_log_f_is_false"),
        ("poly-condition", "P(λ, d) ≤ 0", "theory.dimension.growth_exponent", f"{_BOUNDS}::test_growth_remark_as_printed"),
        ("rmk-growth, π/e", "λ ≥ π/e suffices", "theory.dimension.critical_ratio", f"{_BOUNDS}::test_growth_remark_as_printed"),
        # A.5, A.6 Proofs of the corollaries
        ("§A.5, Markov", "P(X > η) ≤ δ", "theory.tightness.required_width", f"{_BOUNDS}::test_required_width_keeps_its_promise"),
        ("residual-pme-aux", "12(…)+1: 24(…)+2", "theory.corollaries.porous_medium_corollary", f"{_ERRATA}::test_e_the_factors_of_the_proof_of_pme_are_twice_the_printed"),
        ("§A.5, H^2_t", "the ∂_t term needs more than 5/2", "theory.bounds.parseval_check", f"{_ERRATA}::test_b_two_derivatives_in_time_are_not_enough_for_the_residual"),
        ("§A.6, (ρ_N, u_N)", "one network of width 2N", "theory.corollaries.paired_network", f"{_COROLLARIES}::test_navier_stokes_corollary_on_a_true_solution"),
        ("§A.6, 𝓑_N", "bound of J¹ alone", "theory.corollaries.continuity_corollary", f"{_COROLLARIES}::test_the_printed_coefficient_of_mass_lacks_the_time_derivative"),
        ("nse-weights-assumption", "L = ‖(ρ_N, u_N)‖² + ‖(ρ, u)‖² in W^(1,∞)", "theory.corollaries.navier_stokes_corollary", f"{_COROLLARIES}::test_navier_stokes_corollary_on_a_true_solution"),
        ("nse-final", "J¹ + J² together", "theory.corollaries.navier_stokes_corollary", f"{_COROLLARIES}::test_navier_stokes_corollary_on_a_true_solution", "pinn-loss"),
        # B Experiments
        ("§B.1", "ridge loss, λ = 1e-5, M = 10N, half focused", "studies.paper.porous_medium.study", f"{_FIT}::test_training_points_are_half_focused", "porous-medium, limits"),
        ("fig:errors-PME, -log", "errors in d = 1, …, 5", "studies.show.figures.error_drawings", "studies/paper/test_chapters.py::test_slopes_of_invented_curves_are_found", "porous-medium"),
        ("§B.1, remarks", "smoothness inside the support; Gaussian weights", "studies.paper.compact_set.chapter", "studies/test_target.py::test_the_compact_set_lies_inside_the_support_and_is_filled_uniformly", "compact-set, weight-laws"),
        ("lagrangian", "Lagrangian system, p_ε = ε/(v-1)^γ", "pde.zoo.travelling_wave.TravellingWave", f"{_WAVE}::test_both_equations_hold", "navier-stokes"),
        ("ODE", "profile equation; v = -s u is wrong", "studies.paper.literal.chapter", "studies/paper/test_new_chapters.py::test_literal_modes_change_what_they_say", "literal"),
        ("fig:TW, fig:NS-log", "profile; errors, λ = 1e-3, M = 2000N", "studies.paper.navier_stokes.chapter", f"{_WAVE}::test_the_numbers_of_the_paper", "navier-stokes, navier-stokes-penalty"),
        ("uWfourier", "Fourier features and the shifted cosine", "network.features.FourierFeatures", f"{_FEATURES}::test_shifted_cosine_identity", "porous-medium"),
    )
)  # fmt: skip


def table() -> str:
    """The statements as a table in Markdown."""
    lines = ["| label | statement | code | test | figure |", "|---|---|---|---|---|"]
    for one in STATEMENTS:
        cells = (one.label, one.what.replace("|", "\\|"), f"`{one.code}`", f"`{one.test}`", one.figure or "–")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
