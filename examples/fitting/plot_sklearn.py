r"""
In a scikit-learn pipeline
==========================

The estimators follow scikit-learn's protocol, so that scaling, cross-validation and grid searches work as with any
other. Here a search finds the scale of the random weights.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rannpde.sklearn import RaNNRegressor

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 10, 300))[:, None]
y = np.sin(x[:, 0] ** 1.5) + 0.15 * rng.standard_normal(300)

model = make_pipeline(StandardScaler(), RaNNRegressor(width=150, penalty="gcv", random_state=0))
scales = [0.3, 1.0, 3.0, 10.0, 30.0, 100.0]
search = GridSearchCV(model, {"rannregressor__scale": scales}, cv=KFold(5, shuffle=True, random_state=0)).fit(x, y)
print(search.best_params_, f"score {search.best_score_:.3f}")

fine = np.linspace(0, 10, 1000)[:, None]
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.5), width_ratios=(3, 2))
left.plot(x[:, 0], y, ".", color="#999999", markersize=4)
left.plot(fine[:, 0], search.predict(fine), color="#0072B2")
left.plot(fine[:, 0], np.sin(fine[:, 0] ** 1.5), "k:", linewidth=1)
left.set(xlabel="$x$", title=r"noisy values of $\sin(x^{3/2})$ and the chosen fit")
right.semilogx(scales, search.cv_results_["mean_test_score"], "o-", color="#D55E00")
right.set(xlabel="scale of the weights", ylabel="score in cross-validation", ylim=(-0.1, 1.02))
